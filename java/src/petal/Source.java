package petal;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The bytes of a file, in memory or mapped: pieces of 2^log bytes, because a buffer has at most 2^31.
 *
 * <p>Each piece also has the first {@link #OVERLAP} bytes of the next one, so that no number is in two pieces. A block of
 * 64 or 128 bytes that begins at a multiple of its size is not either.
 */
final class Source {
    /** A gibibyte. */
    static final int LOG = 30;

    static final int OVERLAP = 8;

    final long length;
    private final int log;
    private final ByteBuffer[] pieces;

    private Source(long length, int log, List<ByteBuffer> pieces) {
        this.length = length;
        this.log = log;
        for (ByteBuffer piece : pieces) {
            piece.order(ByteOrder.LITTLE_ENDIAN);
        }
        this.pieces = pieces.toArray(new ByteBuffer[0]);
    }

    /** Returns the bytes of an array, which is not copied. */
    static Source of(byte[] bytes, int log) {
        List<ByteBuffer> pieces = new ArrayList<>();
        for (long at = 0; at < bytes.length; at += 1L << log) {
            pieces.add(ByteBuffer.wrap(bytes, (int) at, size(at, bytes.length, log)).slice());
        }
        return new Source(bytes.length, log, pieces);
    }

    static Source map(FileChannel channel) throws IOException {
        long length = channel.size();
        List<ByteBuffer> pieces = new ArrayList<>();
        for (long at = 0; at < length; at += 1L << LOG) {
            pieces.add(channel.map(FileChannel.MapMode.READ_ONLY, at, size(at, length, LOG)));
        }
        return new Source(length, LOG, pieces);
    }

    /** Reads a number of bytes. Memory grows with the bytes that arrive, so a wrong length takes none. */
    static Source read(InputStream in, long length, int log) throws IOException {
        List<ByteBuffer> pieces = new ArrayList<>();
        byte[] piece = {};
        for (long at = 0; at < length; at += 1L << log) {
            int size = size(at, length, log);
            int have = at == 0 ? 0 : Math.min(size, OVERLAP);
            byte[] before = piece;
            piece = new byte[Math.min(size, 1 << 20)];
            System.arraycopy(before, at == 0 ? 0 : 1 << log, piece, 0, have);
            while (true) {
                have += in.readNBytes(piece, have, piece.length - have);
                if (have < piece.length) {
                    throw PetalException.length(length, at + have);
                }
                if (have == size) {
                    break;
                }
                piece = Arrays.copyOf(piece, (int) Math.min(size, 2L * have));
            }
            pieces.add(ByteBuffer.wrap(piece));
        }
        return new Source(length, log, pieces);
    }

    /** Writes all bytes, which must be in memory. */
    void write(OutputStream out) throws IOException {
        for (int i = 0; i < pieces.length; i++) {
            int size = (int) Math.min(1L << log, length - ((long) i << log));
            out.write(pieces[i].array(), pieces[i].arrayOffset(), size);
        }
    }

    /** Returns the size of the piece that begins at an offset. */
    private static int size(long at, long length, int log) {
        return (int) Math.min((1L << log) + OVERLAP, length - at);
    }

    /** Returns the piece with an offset. */
    ByteBuffer piece(long at) {
        return pieces[(int) (at >>> log)];
    }

    /** Returns where an offset is in its piece. */
    int index(long at) {
        return (int) at & (1 << log) - 1;
    }

    long word(long at) {
        return piece(at).getLong(index(at));
    }

    int half(long at) {
        return piece(at).getInt(index(at));
    }

    byte get(long at) {
        return piece(at).get(index(at));
    }

    /** Returns a copy of some bytes, whose number must be known to be small. */
    byte[] bytes(long at, int count) {
        byte[] bytes = new byte[count];
        for (int i = 0; i < count; i++) {
            bytes[i] = get(at + i);
        }
        return bytes;
    }

    /** Checks that all bytes of a range are zero. */
    void checkZeros(String what, long from, long to) throws PetalException {
        long at = from;
        while (at < to) {
            boolean whole = to - at >= 8;
            if ((whole ? word(at) : get(at)) != 0) {
                throw PetalException.damaged(what, at, 0, "other bytes");
            }
            at += whole ? 8 : 1;
        }
    }
}
