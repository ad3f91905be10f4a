package petal;

import java.nio.ByteBuffer;

/** Layouts 1 to 4: bits of blocked and classic Bloom filters, which counting filters have counters after. */
final class BitTable extends Table {
    private final Source file;
    private final long at;
    /** Blocks, or bits if {@link #lanes} is 0. */
    private final long extent;
    private final int lanes;
    private final int probes;
    /** Bits of a counter; 1 if there are none. */
    private final int width;

    BitTable(Header header, Source file) throws PetalException {
        this.file = file;
        at = header.dataAt;
        lanes = header.lanes;
        probes = header.probes;
        boolean counting = header.layout > 2;
        header.checkUnused(counting ? 1 : 0, false);
        width = counting ? (int) header.parameter(0, "width", 2, 8) : 1;
        if (header.layout % 2 == 0) {
            Header.range("lanes", 40, lanes, 0, 0);
        } else if (lanes != 8 && lanes != 16) {
            throw PetalException.damaged("lanes", 40, "8 or 16", lanes);
        }
        Header.range("probes", 38, probes, 1, lanes == 0 ? 64 : lanes);
        extent = Header.range("extent", 64, header.extent, 1, 1L << (lanes == 0 ? 59 : 50));
        header.checkDataLength(size() * width);
    }

    /** Returns the bytes of the bits. */
    private long size() {
        return lanes == 0 ? 64 * ceil(extent, 9) : 8 * lanes * extent;
    }

    @Override
    boolean contains(long hash) {
        return lanes == 0 ? containsClassic(hash) : containsBlocked(hash);
    }

    private boolean containsBlocked(long hash) {
        long block = at + 8 * lanes * Hash.part(hash, extent);
        // A block of up to 128 bytes is in one piece, as both begin at multiples of its size.
        ByteBuffer piece = file.piece(block);
        int index = file.index(block);
        long low = hash * 0x9e3779b97f4a7c15L;
        long high = hash * 0x9fb21c651e98df25L;
        int start = (int) (low >>> 12);
        for (int i = 0; i < probes; i++) {
            int lane = start + i & lanes - 1;
            long bit = (lane < 8 ? low : high) >>> 16 + 6 * (lane & 7);
            // A shift uses the lowest six bits of its distance.
            if ((piece.getLong(index + 8 * lane) >>> bit & 1) == 0) {
                return false;
            }
        }
        return true;
    }

    private boolean containsClassic(long hash) {
        long x = hash;
        for (int i = 0; i < probes; i++) {
            long bit = Hash.part(x, extent);
            if ((file.word(at + 8 * (bit >>> 6)) >>> bit & 1) == 0) {
                return false;
            }
            x *= 0xf1357aea2e62a9c5L;
        }
        return true;
    }

    @Override
    void verify() throws PetalException {
        long bits = size();
        for (long bit = extent; lanes == 0 && bit < 8 * bits; bit++) {
            if ((file.word(at + 8 * (bit >>> 6)) >>> bit & 1) != 0) {
                throw PetalException.damaged("bits after the last one", at + bit / 8, 0, 1);
            }
        }
        for (long line = 0; width > 1 && line < bits; line += 64) {
            for (int i = 0; i < 64 * (width - 1); i += 8) {
                long plane = at + bits + line * (width - 1) + i;
                if ((file.word(plane) & ~file.word(at + line + i % 64)) != 0) {
                    throw PetalException.damaged("counters of clear bits", plane, 0, "a count");
                }
            }
        }
    }
}
