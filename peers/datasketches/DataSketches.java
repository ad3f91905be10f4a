/**
 * Apache DataSketches' BloomFilter; files are those of toByteArray.
 *
 * Variants: string, long. The seed is 12345 and is stored in the file; the default is random. The library ignores empty
 * strings.
 */

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import org.apache.datasketches.filters.bloomfilter.BloomFilter;
import org.apache.datasketches.filters.bloomfilter.BloomFilterBuilder;
import org.apache.datasketches.memory.Memory;

final class DataSketches extends Peer {
    private static final long SEED = 12345;

    Class<?> library() {
        return BloomFilter.class;
    }

    Filter make(String variant, long n, double rate) {
        return filter(variant, BloomFilterBuilder.createByAccuracy(n, rate, SEED));
    }

    Filter open(String variant, InputStream file) throws IOException {
        return filter(variant, BloomFilter.heapify(Memory.wrap(file.readAllBytes())));
    }

    private static Filter filter(String variant, BloomFilter filter) {
        boolean longs = switch (variant) {
            case "string" -> false;
            case "long" -> true;
            default -> throw noSuch(variant);
        };
        return new Filter() {
            public void add(String line) {
                if (longs) {
                    filter.update(Long.parseLong(line));
                } else {
                    filter.update(line);
                }
            }

            public boolean contains(String line) {
                return longs ? filter.query(Long.parseLong(line)) : filter.query(line);
            }

            public void save(OutputStream out) throws IOException {
                out.write(filter.toByteArray());
            }
        };
    }

    public static void main(String[] args) {
        new DataSketches().run(args);
    }
}
