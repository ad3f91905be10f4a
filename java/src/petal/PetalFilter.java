package petal;

import java.io.IOException;
import java.io.InputStream;
import java.io.InvalidObjectException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.function.Predicate;

/**
 * A filter file of petal that is queried: an added key is always present, an absent one with the filter's
 * false-positive rate.
 *
 * <p>A key is bytes. Text is its UTF-8 bytes, and a {@code long} its eight bytes, the lowest first. Types of filters are
 * {@code bloom}, {@code classic}, {@code counting}, {@code counting-classic}, {@code static}, {@code static-fuse} and
 * {@code cascade}; others are {@linkplain PetalException.Kind#UNSUPPORTED unsupported}.
 *
 * <p>Filters do not change, and any number of threads may query one. A query of bytes or a number allocates no memory.
 *
 * <p><b>The serial form</b> of a filter that was {@linkplain #map mapped} is the path of its file, which must exist where
 * it is read, with the same header. That of other filters is their bytes. If the secret is not in the file, the serial
 * form contains it.
 */
public final class PetalFilter implements Predicate<CharSequence>, Serializable {
    private static final long serialVersionUID = 1;

    private final transient Header header;
    private final transient Source file;
    private final transient Table table;
    private final transient Hash hash;
    private final transient String metadata;
    private final transient byte[] secret;
    /** The file that is mapped, or null. */
    private final transient Path path;

    /** Opens a filter without reading its data. */
    PetalFilter(Source file, byte[] secret, Path path) throws PetalException {
        this.file = file;
        this.path = path;
        header = new Header(file, file.length);
        metadata = header.metadata();
        table = Table.of(header, file);
        hash = header.hash(secret);
        this.secret = secret == null ? null : secret.clone();
    }

    /** Reads a file into memory, of any size, and verifies it. */
    public static PetalFilter open(Path path) throws IOException {
        return open(path, null);
    }

    /** As {@link #open(Path)}, with the 16 bytes of a secret that is not in the file; other files ignore it. */
    public static PetalFilter open(Path path, byte[] secret) throws IOException {
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
            long length = channel.size();
            InputStream in = Channels.newInputStream(channel);
            // Most files that are no filters are not read.
            new Header(Source.of(in.readNBytes(Header.LENGTH), Source.LOG), length);
            channel.position(0);
            return verified(new PetalFilter(Source.read(in, length, Source.LOG), secret, null));
        } catch (PetalException e) {
            throw e.in(path);
        }
    }

    /**
     * Maps a file, whose data are not read: processes share its memory, and {@link #verify} is up to the caller. While it
     * is used the file must not be truncated; replace it by renaming another one.
     */
    public static PetalFilter map(Path path) throws IOException {
        return map(path, null);
    }

    /** As {@link #map(Path)}, with the 16 bytes of a secret that is not in the file; other files ignore it. */
    public static PetalFilter map(Path path, byte[] secret) throws IOException {
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
            return new PetalFilter(Source.map(channel), secret, path.toAbsolutePath());
        } catch (PetalException e) {
            throw e.in(path);
        }
    }

    /** Verifies the bytes of a whole file. The array is not copied and must not be changed. */
    public static PetalFilter fromBytes(byte[] file) throws PetalException {
        return fromBytes(file, null);
    }

    /** As {@link #fromBytes(byte[])}, with the 16 bytes of a secret that is not in the file; others ignore it. */
    public static PetalFilter fromBytes(byte[] file, byte[] secret) throws PetalException {
        return verified(new PetalFilter(Source.of(file, Source.LOG), secret, null));
    }

    private static PetalFilter verified(PetalFilter filter) throws PetalException {
        filter.verify();
        return filter;
    }

    /** Reads all data, compares their checksum, and checks everything else that opening does not. */
    public void verify() throws PetalException {
        try {
            header.verifyData();
            table.verify();
        } catch (PetalException e) {
            throw path == null ? e : e.in(path);
        }
    }

    /** Returns whether the filter contains a text; a surrogate without its pair counts as a question mark. */
    public boolean contains(CharSequence key) {
        return contains(key.toString().getBytes(StandardCharsets.UTF_8));
    }

    /** Returns whether the filter contains the bytes of a key. */
    public boolean contains(byte[] key) {
        return table.contains(hash.of(key));
    }

    /** Returns whether the filter contains a number that was added as eight bytes, not as digits. */
    public boolean contains(long key) {
        return table.contains(hash.of(key));
    }

    /** Returns whether the filter contains a text, for {@code stream.filter(filter)}. */
    @Override
    public boolean test(CharSequence key) {
        return contains(key);
    }

    /** Returns the name of the type, such as {@code bloom}. */
    public String type() {
        return header.type();
    }

    /** Returns the number of keys that were new when they were added; an estimate after a union. */
    public long size() {
        return header.inserted;
    }

    /** Returns the metadata, mostly a JSON object; empty if there are none. */
    public String metadata() {
        return metadata;
    }

    /** Returns the hash of a key, for tests. */
    long hash(byte[] key) {
        return hash.of(key);
    }

    private Object writeReplace() {
        return new SerialForm(this);
    }

    private void readObject(ObjectInputStream in) throws IOException {
        throw new InvalidObjectException("a filter is read from its serial form");
    }

    /** What is serialised instead of a filter. */
    private static final class SerialForm implements Serializable {
        private static final long serialVersionUID = 1;

        private transient PetalFilter filter;

        SerialForm(PetalFilter filter) {
            this.filter = filter;
        }

        private void writeObject(ObjectOutputStream out) throws IOException {
            out.defaultWriteObject();
            out.writeBoolean(filter.secret != null);
            if (filter.secret != null) {
                out.write(filter.secret);
            }
            out.writeObject(filter.path == null ? null : filter.path.toString());
            out.writeLong(filter.path == null ? filter.file.length : filter.file.word(Header.AT_SUM));
            if (filter.path == null) {
                filter.file.write(out);
            }
        }

        private void readObject(ObjectInputStream in) throws IOException, ClassNotFoundException {
            in.defaultReadObject();
            byte[] secret = in.readBoolean() ? in.readNBytes(16) : null;
            String path = (String) in.readObject();
            long number = in.readLong();
            if (path == null) {
                filter = verified(new PetalFilter(Source.read(in, number, Source.LOG), secret, null));
                return;
            }
            filter = map(Path.of(path), secret);
            long sum = filter.file.word(Header.AT_SUM);
            if (sum != number) {
                String expected = Long.toHexString(number) + " as in the serial form";
                throw PetalException.damaged("header checksum", Header.AT_SUM, expected, Long.toHexString(sum))
                        .in(path);
            }
        }

        private Object readResolve() {
            return filter;
        }
    }
}
