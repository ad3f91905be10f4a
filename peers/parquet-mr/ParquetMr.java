/**
 * The split-block filter of Parquet's Java library; files are header and bitset, as inside a Parquet file.
 *
 * Variants are types of columns: bytes (of the line in UTF-8), long, int.
 */

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.function.ToLongFunction;
import org.apache.parquet.column.values.bloomfilter.BlockSplitBloomFilter;
import org.apache.parquet.format.BloomFilterAlgorithm;
import org.apache.parquet.format.BloomFilterCompression;
import org.apache.parquet.format.BloomFilterHash;
import org.apache.parquet.format.BloomFilterHeader;
import org.apache.parquet.format.SplitBlockAlgorithm;
import org.apache.parquet.format.Uncompressed;
import org.apache.parquet.format.Util;
import org.apache.parquet.format.XxHash;
import org.apache.parquet.io.api.Binary;

final class ParquetMr extends Peer {
    Class<?> library() {
        return BlockSplitBloomFilter.class;
    }

    Filter make(String variant, long n, double rate) {
        return filter(variant, new BlockSplitBloomFilter(BlockSplitBloomFilter.optimalNumOfBits(n, rate) / 8));
    }

    Filter open(String variant, InputStream file) throws IOException {
        int size = Util.readBloomFilterHeader(file).getNumBytes();
        byte[] bitset = file.readNBytes(size);
        if (bitset.length < size) {
            throw new EOFException("the bitset has " + bitset.length + " bytes, the header says " + size);
        }
        return filter(variant, new BlockSplitBloomFilter(bitset));
    }

    private static Filter filter(String variant, BlockSplitBloomFilter filter) {
        ToLongFunction<String> hash = switch (variant) {
            case "bytes" -> line -> filter.hash(Binary.fromConstantByteArray(utf8(line)));
            case "long" -> line -> filter.hash(Long.parseLong(line));
            case "int" -> line -> filter.hash(Integer.parseInt(line));
            default -> throw noSuch(variant);
        };
        return new Filter() {
            public void add(String line) {
                filter.insertHash(hash.applyAsLong(line));
            }

            public boolean contains(String line) {
                return filter.findHash(hash.applyAsLong(line));
            }

            public void save(OutputStream out) throws IOException {
                BloomFilterHeader header = new BloomFilterHeader(
                        filter.getBitsetSize(),
                        BloomFilterAlgorithm.BLOCK(new SplitBlockAlgorithm()),
                        BloomFilterHash.XXHASH(new XxHash()),
                        BloomFilterCompression.UNCOMPRESSED(new Uncompressed()));
                Util.writeBloomFilterHeader(header, out);
                filter.writeTo(out);
            }
        };
    }

    public static void main(String[] args) {
        new ParquetMr().run(args);
    }
}
