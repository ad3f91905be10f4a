package petal;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/** From the bytes of a key to a word. A number has the hash of its eight bytes, the lowest first. */
abstract class Hash {
    private static final VarHandle WORDS =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle HALVES =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

    abstract long of(byte[] key);

    abstract long of(long number);

    /** Returns the hash with the number and seed of a file; that of 6 is the secret. */
    static Hash of(int number, long low, long high) {
        switch (number) {
            case 1:
                return new Rapid(low ^ fold(low ^ Rapid.SECRETS[2], Rapid.SECRETS[1]), Rapid.SECRETS);
            case 5:
                long[] secrets = new long[8];
                for (int i = 0; i < 8; i++) {
                    secrets[i] = fold(low ^ Rapid.PI[i], high ^ Rapid.PI[8 + i]);
                }
                return new Rapid(secrets[7], secrets);
            default:
                return new Sip(low, high, 1, 3);
        }
    }

    /** Returns what a file with hash 6 has of its secret. */
    static long checkValue(long low, long high) {
        return new Sip(low, high, 2, 4).of("petal secret".getBytes(StandardCharsets.US_ASCII));
    }

    static long word(byte[] bytes, int at) {
        return (long) WORDS.get(bytes, at);
    }

    private static long half(byte[] bytes, int at) {
        return (int) HALVES.get(bytes, at) & 0xffffffffL;
    }

    /** Returns the high word of the product of two unsigned words. */
    static long part(long x, long n) {
        return Math.multiplyHigh(x, n) + (x >> 63 & n) + (n >> 63 & x);
    }

    /** Returns the high word of the product XOR its low word. */
    static long fold(long a, long b) {
        return part(a, b) ^ a * b;
    }

    /** Version 3 of rapidhash by Nicolas De Carli. */
    private static final class Rapid extends Hash {
        static final long[] SECRETS = {
            0x2d358dccaa6c78a5L, 0x8bb84b93962eacc9L, 0x4b33a62ed433d4a3L, 0x4d5a2da51de1aa47L,
            0xa0761d6478bd642fL, 0xe7037ed1a0b428dbL, 0x90ed1765281c388cL,
        };

        /** The first bits of pi after the point. */
        static final long[] PI = {
            0x243f6a8885a308d3L, 0x13198a2e03707344L, 0xa4093822299f31d0L, 0x082efa98ec4e6c89L,
            0x452821e638d01377L, 0xbe5466cf34e90c6cL, 0xc0ac29b7c97c50ddL, 0x3f84d5b5b5470917L,
            0x9216d5d98979fb1bL, 0xd1310ba698dfb5acL, 0x2ffd72dbd01adfb7L, 0xb8e1afed6a267e96L,
            0xba7c9045f12c7f99L, 0x24a19947b3916cf7L, 0x0801f2e2858efc16L, 0x636920d871574e69L,
        };

        private final long start;
        private final long[] secrets;

        Rapid(long start, long[] secrets) {
            this.start = start;
            this.secrets = secrets;
        }

        @Override
        long of(long number) {
            return end(number, number, start ^ 8, 8);
        }

        @Override
        long of(byte[] key) {
            int length = key.length;
            if (length > 16) {
                return ofLong(key);
            }
            if (length >= 8) {
                return end(word(key, 0), word(key, length - 8), start ^ length, length);
            }
            if (length >= 4) {
                return end(half(key, 0), half(key, length - 4), start ^ length, length);
            }
            if (length == 0) {
                return end(0, 0, start, 0);
            }
            long ends = (key[0] & 0xffL) << 45 | key[length - 1] & 0xffL;
            return end(ends, key[length / 2] & 0xffL, start, length);
        }

        private long ofLong(byte[] key) {
            long seed = start;
            int at = 0;
            if (key.length > 112) {
                long see1 = seed, see2 = seed, see3 = seed, see4 = seed, see5 = seed, see6 = seed;
                do {
                    seed = mix(key, at, secrets[0], seed);
                    see1 = mix(key, at + 16, secrets[1], see1);
                    see2 = mix(key, at + 32, secrets[2], see2);
                    see3 = mix(key, at + 48, secrets[3], see3);
                    see4 = mix(key, at + 64, secrets[4], see4);
                    see5 = mix(key, at + 80, secrets[5], see5);
                    see6 = mix(key, at + 96, secrets[6], see6);
                    at += 112;
                } while (key.length - at > 112);
                seed ^= see1 ^ see2 ^ see3 ^ see4 ^ see5 ^ see6;
            }
            int left = key.length - at;
            for (int i = 0; left > 16 + 16 * i; i++) {
                // Of the steps 0 to 5, 2, 3 and 5 use the other secret.
                seed = mix(key, at + 16 * i, (0b101100 >> i & 1) != 0 ? secrets[1] : secrets[2], seed);
            }
            return end(word(key, key.length - 16) ^ left, word(key, key.length - 8), seed, left);
        }

        private static long mix(byte[] key, int at, long secret, long seed) {
            return fold(word(key, at) ^ secret, word(key, at + 8) ^ seed);
        }

        private long end(long a, long b, long seed, long length) {
            long x = a ^ secrets[1];
            long y = b ^ seed;
            return fold(x * y ^ 0xaaaaaaaaaaaaaaaaL, part(x, y) ^ secrets[1] ^ length);
        }
    }

    /** SipHash-c-d by Aumasson and Bernstein. */
    private static final class Sip extends Hash {
        private final long low;
        private final long high;
        private final int c;
        private final int d;

        Sip(long low, long high, int c, int d) {
            this.low = low;
            this.high = high;
            this.c = c;
            this.d = d;
        }

        @Override
        long of(long number) {
            return of(null, number, 8);
        }

        @Override
        long of(byte[] key) {
            return of(key, 0, key.length);
        }

        /** Returns the hash of a key, or of a number if that is null. */
        private long of(byte[] key, long number, int length) {
            long v0 = low ^ 0x736f6d6570736575L;
            long v1 = high ^ 0x646f72616e646f6dL;
            long v2 = low ^ 0x6c7967656e657261L;
            long v3 = high ^ 0x7465646279746573L;
            int words = length / 8;
            // The words, one with the length, and the end.
            for (int i = 0; i <= words + 1; i++) {
                long word = 0;
                if (i < words) {
                    word = key == null ? number : word(key, 8 * i);
                } else if (i == words) {
                    word = (long) length << 56;
                    for (int at = 8 * words; at < length; at++) {
                        word |= (key[at] & 0xffL) << 8 * (at & 7);
                    }
                } else {
                    v2 ^= 0xff;
                }
                v3 ^= word;
                for (int round = i > words ? d : c; round > 0; round--) {
                    v0 += v1;
                    v1 = Long.rotateLeft(v1, 13) ^ v0;
                    v0 = Long.rotateLeft(v0, 32);
                    v2 += v3;
                    v3 = Long.rotateLeft(v3, 16) ^ v2;
                    v0 += v3;
                    v3 = Long.rotateLeft(v3, 21) ^ v0;
                    v2 += v1;
                    v1 = Long.rotateLeft(v1, 17) ^ v2;
                    v2 = Long.rotateLeft(v2, 32);
                }
                v0 ^= word;
            }
            return v0 ^ v1 ^ v2 ^ v3;
        }
    }
}
