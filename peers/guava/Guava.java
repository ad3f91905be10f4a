/**
 * Guava's BloomFilter; files are those of writeTo.
 *
 * Variants are funnels, which the file does not store: utf8 (stringFunnel), utf16 (unencodedCharsFunnel), long
 * (longFunnel), int (integerFunnel), bytes (byteArrayFunnel, of the line in UTF-8). The strategy is
 * MURMUR128_MITZ_64, as in all new filters; the suffix -32 selects MURMUR128_MITZ_32 of old files, which is not
 * accessible to users of the library.
 */

import com.google.common.hash.BloomFilter;
import com.google.common.hash.Funnel;
import com.google.common.hash.Funnels;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.function.Function;

final class Guava extends Peer {
    /** The funnel of a variant. */
    private record Keys<T>(Funnel<? super T> funnel, Function<String, T> key) {
        static Keys<?> of(String variant) {
            return switch (variant.replaceFirst("-32$", "")) {
                case "utf8" -> new Keys<CharSequence>(Funnels.stringFunnel(StandardCharsets.UTF_8), line -> line);
                case "utf16" -> new Keys<CharSequence>(Funnels.unencodedCharsFunnel(), line -> line);
                case "long" -> new Keys<>(Funnels.longFunnel(), Long::valueOf);
                case "int" -> new Keys<>(Funnels.integerFunnel(), Integer::valueOf);
                case "bytes" -> new Keys<>(Funnels.byteArrayFunnel(), Peer::utf8);
                default -> throw noSuch(variant);
            };
        }

        Filter make(long n, double rate) {
            return filter(BloomFilter.create(funnel, n, rate));
        }

        @SuppressWarnings("unchecked")
        Filter make32(long n, double rate) throws ReflectiveOperationException {
            String home = BloomFilter.class.getPackageName();
            Class<?> strategy = Class.forName(home + ".BloomFilter$Strategy");
            Field old = Class.forName(home + ".BloomFilterStrategies").getField("MURMUR128_MITZ_32");
            old.setAccessible(true);
            Method create = BloomFilter.class.getDeclaredMethod("create", Funnel.class, long.class, double.class, strategy);
            create.setAccessible(true);
            return filter((BloomFilter<T>) create.invoke(null, funnel, n, rate, old.get(null)));
        }

        Filter open(InputStream file) throws IOException {
            return filter(BloomFilter.readFrom(file, funnel));
        }

        private Filter filter(BloomFilter<? super T> filter) {
            return new Filter() {
                public void add(String line) {
                    filter.put(key.apply(line));
                }

                public boolean contains(String line) {
                    return filter.mightContain(key.apply(line));
                }

                public void save(OutputStream out) throws IOException {
                    filter.writeTo(out);
                }
            };
        }
    }

    Class<?> library() {
        return BloomFilter.class;
    }

    Filter make(String variant, long n, double rate) throws Exception {
        Keys<?> keys = Keys.of(variant);
        return variant.endsWith("-32") ? keys.make32(n, rate) : keys.make(n, rate);
    }

    Filter open(String variant, InputStream file) throws IOException {
        return Keys.of(variant).open(file);
    }

    public static void main(String[] args) {
        new Guava().run(args);
    }
}
