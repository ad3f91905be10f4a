package petal;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/** The first 256 bytes of a file, checked, and its metadata. */
final class Header {
    static final int LENGTH = 256;
    static final int AT_SUM = 248;

    private static final long MAGIC = 0x0a0d4c4154455089L;
    private static final int MAX_METADATA = 1 << 20;
    private static final int AT_PARAMETERS = 96;
    private static final String[] TYPES = {
        "bloom", "classic", "counting", "counting-classic", "quotient", "scalable", "windowed", "static", "cascade",
        null, "vector-quotient", "static-fuse",
    };

    final int layout;
    final long dataAt;
    final long dataLength;
    final int metadataLength;
    final int hash;
    final int probes;
    final int lanes;
    final long extent;
    final long inserted;
    private final Source file;

    /** Checks the header against the length of the whole file. */
    Header(Source front, long length) throws PetalException {
        file = front;
        boolean petal = front.length > 0;
        for (int i = 0; i < Math.min(8, front.length); i++) {
            petal &= front.get(i) == (byte) (MAGIC >>> 8 * i);
        }
        if (!petal) {
            throw PetalException.foreign();
        }
        if (front.length < LENGTH) {
            throw PetalException.length(LENGTH, front.length);
        }
        int version = (int) field(8, 2);
        if (version != 1) {
            String newer = "version " + version + " of the format";
            throw PetalException.unsupported(8, newer, "use a newer reader");
        }
        layout = (int) field(10, 2);
        if (layout == 0 || layout > TYPES.length || type() == null) {
            throw PetalException.unsupported(10, "layout " + layout, "use a newer reader");
        }
        if (layout == 5 || layout == 6 || layout == 7 || layout == 11) {
            String advice = "build a filter of the type bloom, classic, static, static-fuse or cascade";
            throw PetalException.unsupported(10, "a filter of the type " + type(), advice);
        }
        range("flags", 12, field(12, 4), 0, 0);
        metadataLength = (int) range("metadata length", 32, field(32, 4), 0, MAX_METADATA);
        dataAt = LENGTH + metadataLength + 4095 & -4096;
        range("data offset", 16, front.word(16), dataAt, dataAt);
        hash = (int) field(36, 2);
        if (hash != 1 && hash != 2 && hash != 5 && hash != 6) {
            throw PetalException.damaged("hash", 36, "1, 2, 5 or 6", hash);
        }
        probes = (int) field(38, 2);
        lanes = (int) field(40, 2);
        range("reserved", 42, field(42, 6), 0, 0);
        if (hash == 1 || hash == 6) {
            range("seed", 56, front.word(56), 0, 0);
        }
        extent = front.word(64);
        double target = Double.longBitsToDouble(front.word(80));
        if (front.word(80) < 0 || !(target < 1)) {
            throw PetalException.damaged("target rate", 80, "0 to 1", target);
        }
        inserted = range("keys inserted", 88, front.word(88), 0, Long.MAX_VALUE);
        dataLength = front.word(24);
        if (dataLength < 0 || length - dataAt != dataLength) {
            throw PetalException.length(dataAt + dataLength, length);
        }
    }

    /** Returns a number of fewer than 8 bytes. */
    private long field(int at, int bytes) {
        return file.word(at) & (1L << 8 * bytes) - 1;
    }

    String type() {
        return TYPES[layout - 1];
    }

    long parameter(int number) {
        return file.word(AT_PARAMETERS + 8 * number);
    }

    /** Returns a parameter, which must be in a range of numbers below 2^63. */
    long parameter(int number, String name, long min, long max) throws PetalException {
        return range(name, AT_PARAMETERS + 8 * number, parameter(number), min, max);
    }

    /** Returns the hash of keys; the secret is needed if the file does not have it. */
    Hash hash(byte[] secret) throws PetalException {
        long low = file.word(48);
        if (hash != 6) {
            return Hash.of(hash, low, file.word(56));
        }
        if (secret == null) {
            String problem = "the secret of this filter is not in its file";
            throw PetalException.secret(problem, "give the secret it was built with");
        }
        if (secret.length != 16) {
            throw PetalException.secret("a secret of " + secret.length + " bytes", "give one of 16");
        }
        long first = Hash.word(secret, 0);
        long second = Hash.word(secret, 8);
        if (Hash.checkValue(first, second) != low) {
            throw PetalException.secret("wrong secret", "give the one that the filter was built with");
        }
        return Hash.of(6, first, second);
    }

    /** Checks that the parameters from one on, and for some types probes and lanes, are zero. */
    void checkUnused(int parameters, boolean alsoProbes) throws PetalException {
        if (alsoProbes) {
            range("probes", 38, probes, 0, 0);
            range("lanes", 40, lanes, 0, 0);
        }
        for (int i = parameters; i < 18; i++) {
            parameter(i, "unused parameter", 0, 0);
        }
    }

    void checkDataLength(long expected) throws PetalException {
        range("data length", 24, dataLength, expected, expected);
    }

    /** Checks the checksum of header and metadata, and returns the metadata. */
    String metadata() throws PetalException {
        byte[] metadata = file.bytes(LENGTH, metadataLength);
        byte[] summed = file.bytes(0, AT_SUM + metadataLength);
        System.arraycopy(metadata, 0, summed, AT_SUM, metadataLength);
        checkSum("header checksum", AT_SUM, Xxh3.hash(Source.of(summed, Source.LOG), 0, summed.length));
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(metadata)).toString();
        } catch (CharacterCodingException e) {
            throw PetalException.damaged("metadata", LENGTH, "UTF-8", "other bytes");
        }
    }

    /** Reads the zeros after the metadata, and all data. */
    void verifyData() throws PetalException {
        file.checkZeros("padding", LENGTH + metadataLength, dataAt);
        checkSum("data checksum", 240, Xxh3.hash(file, dataAt, dataLength));
    }

    private void checkSum(String name, int at, long sum) throws PetalException {
        if (file.word(at) != sum) {
            throw PetalException.damaged(name, at, Long.toHexString(sum), Long.toHexString(file.word(at)));
        }
    }

    /** Returns a number that must be in a range of numbers below 2^63. */
    static long range(String name, long at, long found, long min, long max) throws PetalException {
        if (found < min || found > max) {
            String expected = min == max ? "" + min : min + " to " + max;
            throw PetalException.damaged(name, at, expected, Long.toUnsignedString(found));
        }
        return found;
    }
}
