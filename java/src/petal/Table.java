package petal;

/** The data of a filter: which hashes it contains. Every query is in bounds, whatever the data are. */
abstract class Table {
    abstract boolean contains(long hash);

    /** Checks what opening does not: bits that must be zero. */
    abstract void verify() throws PetalException;

    static Table of(Header header, Source file) throws PetalException {
        switch (header.layout) {
            case 8:
                header.checkUnused(2, true);
                return new RibbonTable(file, header.dataAt, header.dataLength, header.extent,
                        header.parameter(0), header.parameter(1));
            case 9:
                return new Cascade(header, file);
            case 12:
                return new FuseTable(header, file);
            default:
                return new BitTable(header, file);
        }
    }

    /** Returns n / 2^log, rounded up. */
    static long ceil(long n, int log) {
        return (n >>> log) + ((n & (1L << log) - 1) == 0 ? 0 : 1);
    }

    /** Two static filters: a key that both contain is present. */
    private static final class Cascade extends Table {
        private final RibbonTable first;
        private final RibbonTable second;

        Cascade(Header header, Source file) throws PetalException {
            header.checkUnused(1, true);
            Header.range("extent", 64, header.extent, 2, 2);
            Header.range("capacity", 72, file.word(72), header.inserted, header.inserted);
            long at = header.dataAt;
            long length = Header.range("data length", 24, header.dataLength, 64, Long.MAX_VALUE) - 64;
            long firstLength = 64 * Header.range("lines of the first filter", at, file.word(at), 0, length / 64);
            double rate = Double.longBitsToDouble(file.word(at + 16));
            if (!(rate > 0 && rate < 1)) {
                throw PetalException.damaged("target rate", at + 16, "0 to 1", rate);
            }
            Header.range("keys inserted", at + 56, file.word(at + 56), header.inserted, Long.MAX_VALUE);
            first = new RibbonTable(file, at + 64, firstLength, file.word(at + 8), file.word(at + 24),
                    file.word(at + 32));
            second = new RibbonTable(file, at + 64 + firstLength, length - firstLength, file.word(at + 40), 1,
                    file.word(at + 48));
        }

        @Override
        boolean contains(long hash) {
            return first.contains(hash) && second.contains(hash);
        }

        @Override
        void verify() throws PetalException {
            first.verify();
            second.verify();
        }
    }
}
