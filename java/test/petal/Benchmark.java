package petal;

import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/**
 * Prints nanoseconds of processor time per query of filters of the lines 1 to N, as `seq N | petal build` makes them: of bytes and numbers,
 * N present and N absent ones, in memory and mapped.
 */
public final class Benchmark {
    private Benchmark() {}

    /** The arguments are N and the files. */
    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[0]);
        byte[][] keys = new byte[2 * count][];
        for (int i = 0; i < keys.length; i++) {
            // Out of order, as a processor would guess the next key.
            int key = (int) (i * 7_368_787L % keys.length);
            keys[i] = Integer.toString(key + 1).getBytes(StandardCharsets.UTF_8);
        }
        for (int i = 1; i < args.length; i++) {
            Path path = Path.of(args[i]);
            for (PetalFilter filter : new PetalFilter[] {PetalFilter.open(path), PetalFilter.map(path)}) {
                double[] best = {Double.MAX_VALUE, Double.MAX_VALUE};
                int present = 0;
                for (int round = 0; round < 10; round++) {
                    long start = now();
                    present = 0;
                    for (byte[] key : keys) {
                        present += filter.contains(key) ? 1 : 0;
                    }
                    long middle = now();
                    for (long key = 0; key < keys.length; key++) {
                        present += filter.contains(key) ? 1 : 0;
                    }
                    best[0] = Math.min(best[0], (double) (middle - start) / keys.length);
                    best[1] = Math.min(best[1], (double) (now() - middle) / keys.length);
                }
                System.out.printf("%-12s %5.1f ns for bytes, %5.1f ns for numbers, %d present%n", filter.type(),
                        best[0], best[1], present);
            }
        }
    }

    private static long now() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }
}
