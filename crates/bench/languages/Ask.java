import com.google.common.hash.BloomFilter;
import com.google.common.hash.Funnels;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.function.Predicate;
import petal.PetalFilter;

/** Times a filter in Java: Ask TYPE FOLDER. The type is that of a file of petal, or `rival`, which is Guava's. */
public class Ask {
    static final int WARM_UP = 5, ROUNDS = 5;

    static byte[][] keys(String folder, String name) throws IOException {
        return Files.readAllLines(Path.of(folder, name + ".txt")).stream().map(String::getBytes).toArray(byte[][]::new);
    }

    static int ask(Predicate<byte[]> filter, byte[][] keys) {
        int found = 0;
        for (byte[] key : keys) {
            if (filter.test(key)) {
                found++;
            }
        }
        return found;
    }

    static void measure(String name, Predicate<byte[]> filter, byte[][] keys) {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        double[] times = new double[ROUNDS];
        int found = 0;
        for (int round = -WARM_UP; round < ROUNDS; round++) {
            long start = threads.getCurrentThreadCpuTime();
            found = ask(filter, keys);
            if (round >= 0) {
                times[round] = (double) (threads.getCurrentThreadCpuTime() - start) / keys.length;
            }
        }
        Arrays.sort(times);
        System.out.printf(Locale.ROOT, "%s %.3f %d%n", name, times[ROUNDS / 2], found);
    }

    public static void main(String[] args) throws IOException {
        String folder = args[1];
        byte[][] present = keys(folder, "present");
        // One predicate a process: the compiler of the JVM inlines its calls.
        Predicate<byte[]> filter;
        if (args[0].equals("rival")) {
            BloomFilter<byte[]> guava = BloomFilter.create(Funnels.byteArrayFunnel(), present.length, 0.01);
            for (byte[] key : present) {
                guava.put(key);
            }
            filter = guava::mightContain;
        } else {
            PetalFilter petal = PetalFilter.open(Path.of(folder, args[0] + ".petal"));
            filter = petal::contains;
        }
        measure("present", filter, present);
        measure("absent", filter, keys(folder, "absent"));
    }
}
