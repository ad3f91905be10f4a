/**
 * Hadoop's BloomFilter; files are those of write, as in the footers of Apache Hudi before base64.
 *
 * Variants: jenkins, murmur (the hash); keys are the bytes of the line. Size and number of
 * hashes are computed as in Hudi. Empty keys are rejected.
 */

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import org.apache.hadoop.util.bloom.BloomFilter;
import org.apache.hadoop.util.bloom.Key;
import org.apache.hadoop.util.hash.Hash;

final class Hadoop extends Peer {
    Class<?> library() {
        return BloomFilter.class;
    }

    Filter make(String variant, long n, double rate) {
        double ln2 = Math.log(2);
        int bits = Math.toIntExact((long) Math.ceil(n * (-Math.log(rate) / (ln2 * ln2))));
        int hashes = (int) Math.ceil(ln2 * bits / n);
        return filter(new BloomFilter(bits, hashes, hash(variant)));
    }

    Filter open(String variant, InputStream file) throws IOException {
        // The hash is stored in the file; the variant is checked anyway.
        hash(variant);
        BloomFilter filter = new BloomFilter();
        filter.readFields(new DataInputStream(file));
        return filter(filter);
    }

    private static int hash(String variant) {
        return switch (variant) {
            case "jenkins" -> Hash.JENKINS_HASH;
            case "murmur" -> Hash.MURMUR_HASH;
            default -> throw noSuch(variant);
        };
    }

    private static Filter filter(BloomFilter filter) {
        return new Filter() {
            public void add(String line) {
                filter.add(new Key(utf8(line)));
            }

            public boolean contains(String line) {
                return filter.membershipTest(new Key(utf8(line)));
            }

            public void save(OutputStream out) throws IOException {
                filter.write(new DataOutputStream(out));
            }
        };
    }

    public static void main(String[] args) {
        new Hadoop().run(args);
    }
}
