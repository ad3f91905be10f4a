package petal;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * XXH3-64 with seed 0 by Yann Collet, for what a file has checksums of: a header of 248 bytes or more, and data of whole
 * lines of 64 bytes.
 */
final class Xxh3 {
    private static final long PRIME32_1 = 0x9e3779b1L;
    private static final long PRIME64_1 = 0x9e3779b185ebca87L;
    private static final long[] START = {
        0xc2b2ae3dL, PRIME64_1, 0xc2b2ae3d27d4eb4fL, 0x165667b19e3779f9L,
        0x85ebca77c2b2ae63L, 0x85ebca77L, 0x27d4eb2f165667c5L, PRIME32_1,
    };

    /** The default secret: words with the most significant byte first. */
    private static final long[] DEFAULT = {
        0xb8fe6c3923a44bbeL, 0x7c01812cf721ad1cL, 0xded46de9839097dbL, 0x7240a4a4b7b3671fL,
        0xcb79e64eccc0e578L, 0x825ad07dccff7221L, 0xb8084674f743248eL, 0xe03590e6813a264cL,
        0x3c2852bb91c300cbL, 0x88d0658b1b532ea3L, 0x71644897a20df94eL, 0x3819ef46a9deacd8L,
        0xa8fa763fe39c343fL, 0xf9dcbbc7c70b4f1dL, 0x8a51e04bcdb45931L, 0xc89f7ec9d9787364L,
        0xeac5ac8334d3ebc3L, 0xc581a0fffa1363ebL, 0x170ddd51b7f0da49L, 0xd316552629d4689eL,
        0x2b16be587d47a1fcL, 0x8ff8b8d17ad031ceL, 0x45cb3a8f95160428L, 0xafd7fbcabb4b407eL,
    };

    /** The word of the secret at each offset in bytes. */
    private static final long[] SECRET = new long[8 * DEFAULT.length - 7];

    static {
        ByteBuffer bytes = ByteBuffer.allocate(8 * DEFAULT.length);
        for (long word : DEFAULT) {
            bytes.putLong(word);
        }
        bytes.order(ByteOrder.LITTLE_ENDIAN);
        for (int at = 0; at < SECRET.length; at++) {
            SECRET[at] = bytes.getLong(at);
        }
    }

    private Xxh3() {}

    /** Returns the hash of a range, whose length is a multiple of 64 or at least 241. */
    static long hash(Source source, long from, long length) {
        if (length == 0) {
            long sum = SECRET[56] ^ SECRET[64];
            sum = (sum ^ sum >>> 33) * 0xc2b2ae3d27d4eb4fL;
            sum = (sum ^ sum >>> 29) * 0x165667b19e3779f9L;
            return sum ^ sum >>> 32;
        }
        return length <= 240 ? middle(source, from, (int) length) : whole(source, from, length);
    }

    private static long middle(Source source, long from, int length) {
        long sum = length * PRIME64_1;
        if (length <= 128) {
            for (int i = (length - 1) / 32; i >= 0; i--) {
                sum += mix(source, from + 16 * i, 32 * i);
                sum += mix(source, from + length - 16 * (i + 1), 32 * i + 16);
            }
            return avalanche(sum);
        }
        for (int i = 0; i < 8; i++) {
            sum += mix(source, from + 16 * i, 16 * i);
        }
        sum = avalanche(sum);
        for (int i = 8; i < length / 16; i++) {
            sum += mix(source, from + 16 * i, 16 * (i - 8) + 3);
        }
        return avalanche(sum + mix(source, from + length - 16, 119));
    }

    private static long whole(Source source, long from, long length) {
        long[] sums = START.clone();
        long stripes = (length - 1) / 64;
        for (long stripe = 0; stripe < stripes; stripe++) {
            int inBlock = (int) (stripe & 15);
            add(sums, source, from + 64 * stripe, 8 * inBlock);
            if (inBlock == 15) {
                for (int i = 0; i < 8; i++) {
                    sums[i] = (sums[i] ^ sums[i] >>> 47 ^ SECRET[128 + 8 * i]) * PRIME32_1;
                }
            }
        }
        add(sums, source, from + length - 64, 121);
        long sum = length * PRIME64_1;
        for (int i = 0; i < 8; i += 2) {
            sum += Hash.fold(sums[i] ^ SECRET[11 + 8 * i], sums[i + 1] ^ SECRET[19 + 8 * i]);
        }
        return avalanche(sum);
    }

    /** Adds a stripe. One of data begins at a multiple of 64, and a header is one piece. */
    private static void add(long[] sums, Source source, long at, int secret) {
        ByteBuffer piece = source.piece(at);
        int index = source.index(at);
        for (int i = 0; i < 8; i++) {
            long word = piece.getLong(index + 8 * i);
            long keyed = word ^ SECRET[secret + 8 * i];
            sums[i ^ 1] += word;
            sums[i] += (keyed & 0xffffffffL) * (keyed >>> 32);
        }
    }

    private static long mix(Source source, long at, int secret) {
        return Hash.fold(source.word(at) ^ SECRET[secret], source.word(at + 8) ^ SECRET[secret + 8]);
    }

    private static long avalanche(long sum) {
        sum = (sum ^ sum >>> 37) * 0x165667919e3779f9L;
        return sum ^ sum >>> 32;
    }
}
