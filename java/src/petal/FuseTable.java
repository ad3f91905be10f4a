package petal;

/** Layout 12: the XOR of four slots of a key is its fingerprint. */
final class FuseTable extends Table {
    private final Source file;
    private final long at;
    private final long bits;
    private final int log;
    private final long shards;
    private final long segments;
    private final long wide;
    private final long mixer;
    private final long slotBits;
    private final long multipliersAt;

    FuseTable(Header header, Source file) throws PetalException {
        this.file = file;
        at = header.dataAt;
        header.checkUnused(6, true);
        bits = header.parameter(0, "bits of a slot", 0, 31);
        log = (int) header.parameter(1, "logarithm of a segment", 0, 16);
        segments = header.parameter(3, "segments of a shard", 4, 1L << 31 - log);
        shards = header.parameter(2, "shards", 0, (1L << 50) / (segments << log));
        if ((shards & shards - 1) != 0) {
            throw PetalException.damaged("shards", 112, "a power of two", shards);
        }
        wide = header.parameter(4, "wide segments", 0, shards * segments);
        mixer = 0x9fb21c651e98df25L
                + 2 * header.parameter(5, "seed", 0, 65535) * 0x9e3779b97f4a7c15L;
        long slots = shards * segments << log;
        Header.range("slots", 64, header.extent, slots, slots);
        slotBits = slots * bits + (wide << log);
        multipliersAt = at + 8 * ceil(slotBits, 6);
        header.checkDataLength(64 * ceil(multipliersAt - at + 8 * shards, 6));
    }

    @Override
    boolean contains(long hash) {
        if (shards == 0) {
            return false;
        }
        long g = Hash.fold(hash, mixer);
        long shard = Hash.part(g, shards);
        long start = (g * shards >>> 32) * (segments - 3 << log) >>> 32;
        long e = g * file.word(multipliersAt + 8 * shard);
        long inSegment = (1L << log) - 1;
        long segment = shard * segments + (start >>> log);
        long sum = g ^ e >>> 32 ^ slot((segment << log) + (start & inSegment));
        for (int i = 1; i < 4; i++) {
            sum ^= slot((segment + i << log) + (e >>> 16 * i & inSegment));
        }
        return (sum & (1L << bits + (segment + 3 < wide ? 1 : 0)) - 1) == 0;
    }

    /** Returns the bits of a slot, and more bits above them. A multiplier follows the last slot. */
    private long slot(long slot) {
        long bit = slot * bits + Math.min(slot, wide << log);
        return file.word(at + (bit >>> 3)) >>> (bit & 7);
    }

    @Override
    void verify() throws PetalException {
        if ((slotBits & 63) != 0 && file.word(multipliersAt - 8) >>> slotBits != 0) {
            throw PetalException.damaged("bits after the last slot", multipliersAt - 8, 0, "a set bit");
        }
        file.checkZeros("bits after the last multiplier", multipliersAt + 8 * shards, file.length);
    }
}
