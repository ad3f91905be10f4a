package petal;

/** Layout 8: equations, in up to 16 layers of rows of bits. */
final class RibbonTable extends Table {
    /** A layer: its row in the directory, and where its parts begin in the file. */
    private static final class Layer {
        long seed;
        long shards;
        long segments;
        long wide;
        long cutsAt;
        /** Half words of the cuts of a shard; 0 in the last layer. */
        long cutsEach;
        long rowsAt;
    }

    private final Source file;
    private final long columns;
    private final Layer[] layers;
    private final long cutsEnd;
    private final long rowsAt;
    private final long rowsEnd;
    private final long end;

    /** The data begin at an offset; the other numbers are of a header, and not checked. */
    RibbonTable(Source file, long at, long length, long extent, long columns, long count) throws PetalException {
        this.file = file;
        this.columns = Header.range("columns", at, columns, 0, 31);
        Header.range("layers", at, count, 0, Math.min(16, length / 64));
        layers = new Layer[(int) count];
        long cuts = 0;
        for (int i = 0; i < layers.length; i++) {
            long line = at + 64 * i;
            Layer layer = layers[i] = new Layer();
            layer.seed = file.word(line);
            layer.segments = Header.range("segments", line + 16, file.word(line + 16), 2, 1 << 20);
            layer.shards = Header.range("shards", line + 8, file.word(line + 8), 1, (1L << 50) / layer.segments);
            layer.wide = Header.range("wide segments", line + 24, file.word(line + 24), 0,
                    layer.shards * layer.segments);
            file.checkZeros("directory", line + 32, line + 64);
            // A bucket is two segments, and a half word has the cuts of 16.
            layer.cutsEach = i + 1 == layers.length ? 0 : ceil(layer.segments - 1, 5);
            layer.cutsAt = at + 64 * count + 4 * cuts;
            cuts += layer.shards * layer.cutsEach;
        }
        cutsEnd = at + 64 * count + 4 * cuts;
        rowsAt = at + 64 * (count + ceil(cuts, 4));
        long rows = 0;
        for (Layer layer : layers) {
            layer.rowsAt = rowsAt + 4 * rows;
            rows += layer.shards * layer.segments * columns + layer.wide;
        }
        rowsEnd = rowsAt + 4 * rows;
        end = rowsAt + 64 * ceil(rows, 4);
        Header.range("half words of rows", at, extent, rows, rows);
        Header.range("data length", at, length, end - at, end - at);
    }

    @Override
    boolean contains(long hash) {
        long g = hash;
        for (Layer layer : layers) {
            g ^= (layer.seed + 1) * 0x9fb21c651e98df25L;
            g = (g ^ g >>> 32) * 0x9e3779b97f4a7c15L;
            g = (g ^ g >>> 29) * 0x9fb21c651e98df25L;
            g ^= g >>> 32;
            long shard = Hash.part(g, layer.shards);
            long start = Hash.part(g * layer.shards, 32 * (layer.segments - 1));
            if (layer.cutsEach != 0) {
                long bucket = start >>> 6;
                int cuts = file.half(layer.cutsAt + 4 * (shard * layer.cutsEach + (bucket >>> 4)));
                int cut = cuts >>> 2 * (int) (bucket & 15) & 3;
                // 0, 8, 20 or 64 rows are bumped.
                if ((start & 63) < (0x40140800 >>> 8 * cut & 0xff)) {
                    continue;
                }
            }
            return containsIn(layer, g, shard * layer.segments + (start >>> 5), (int) start & 31);
        }
        return false;
    }

    /** Compares the columns of the rows from one of a segment on; the last of them are in the next segment. */
    private boolean containsIn(Layer layer, long g, long segment, int row) {
        long e = Hash.fold(g, 0x9e3779b97f4a7c15L);
        int equation = (int) e | 1;
        int fingerprint = (int) (e >>> 32);
        long first = layer.rowsAt + 4 * (segment * columns + Math.min(segment, layer.wide));
        boolean wide = segment + 1 < layer.wide;
        long second = first + 4 * (columns + (segment < layer.wide ? 1 : 0));
        long compared = columns + (wide ? 1 : 0);
        for (long column = 0; column < compared; column++) {
            long low = file.half(first + 4 * column) & 0xffffffffL;
            long rows = (long) file.half(second + 4 * column) << 32 | low;
            int sum = Integer.bitCount((int) (rows >>> row) & equation);
            if (((sum ^ fingerprint >>> column) & 1) != 0) {
                return false;
            }
        }
        return true;
    }

    @Override
    void verify() throws PetalException {
        file.checkZeros("bits after the last cut", cutsEnd, rowsAt);
        file.checkZeros("bits after the last row", rowsEnd, end);
    }
}
