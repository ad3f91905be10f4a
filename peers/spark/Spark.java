/**
 * Spark's BloomFilter, of its sketch library; files are those of writeTo.
 *
 * Variants: v1 or v2 (the version of the format), then -string or -long. The default of Spark 4.1 is
 * V2; the seed is its default, 0.
 */

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import org.apache.spark.util.sketch.BloomFilter;

final class Spark extends Peer {
    Class<?> library() {
        return BloomFilter.class;
    }

    Filter make(String variant, long n, double rate) {
        BloomFilter.Version version = variant.startsWith("v1-") ? BloomFilter.Version.V1 : BloomFilter.Version.V2;
        return filter(variant, BloomFilter.create(version, n, BloomFilter.optimalNumOfBits(n, rate), 0));
    }

    Filter open(String variant, InputStream file) throws IOException {
        return filter(variant, BloomFilter.readFrom(file));
    }

    private static Filter filter(String variant, BloomFilter filter) {
        boolean longs = switch (variant) {
            case "v1-string", "v2-string" -> false;
            case "v1-long", "v2-long" -> true;
            default -> throw noSuch(variant);
        };
        return new Filter() {
            public void add(String line) {
                if (longs) {
                    filter.putLong(Long.parseLong(line));
                } else {
                    filter.putString(line);
                }
            }

            public boolean contains(String line) {
                return longs ? filter.mightContainLong(Long.parseLong(line)) : filter.mightContainString(line);
            }

            public void save(OutputStream out) throws IOException {
                filter.writeTo(out);
            }
        };
    }

    public static void main(String[] args) {
        new Spark().run(args);
    }
}
