package petal;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import com.sun.management.ThreadMXBean;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;

/** Filters as objects of Java. */
public class PetalFilterTest {
    private static final byte[] SECRET = ConformanceTest.bytes("000102030405060708090a0b0c0d0e0f");

    @Rule
    public final TemporaryFolder folder = new TemporaryFolder();

    private static Path conformance(String name) {
        return ConformanceTest.SET.resolve(name);
    }

    private static byte[] serialised(PetalFilter filter) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(filter);
        }
        return bytes.toByteArray();
    }

    private static PetalFilter deserialised(byte[] bytes) throws IOException {
        try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes))) {
            return (PetalFilter) in.readObject();
        } catch (ClassNotFoundException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    public void serialFormsAnswerAlike() throws IOException {
        Path path = conformance("static-secret-apart.petal");
        for (PetalFilter filter : new PetalFilter[] {PetalFilter.open(path, SECRET), PetalFilter.map(path, SECRET)}) {
            PetalFilter copy = deserialised(serialised(filter));
            assertEquals(filter.size(), copy.size());
            assertTrue(copy.contains("one"));
            for (long key = 0; key < 1000; key++) {
                assertEquals(filter.contains(key), copy.contains(key));
            }
        }
    }

    @Test
    public void damagedSerialFormsAreRefused() throws IOException {
        byte[] bytes = serialised(PetalFilter.open(conformance("bloom-rapid.petal")));
        bytes[bytes.length - 20] ^= 1;
        assertThrows(PetalException.class, () -> deserialised(bytes));
        assertThrows(IOException.class, () -> deserialised(Arrays.copyOf(bytes, 3000)));
    }

    @Test
    public void aMappedFileThatWasReplacedIsRefused() throws IOException {
        Path path = folder.getRoot().toPath().resolve("f.petal");
        Files.copy(conformance("bloom-rapid.petal"), path);
        byte[] form = serialised(PetalFilter.map(path));
        Files.delete(path);
        Files.copy(conformance("bloom-seeded.petal"), path);
        PetalException refused = assertThrows(PetalException.class, () -> deserialised(form));
        assertTrue(refused.getMessage(), refused.getMessage().startsWith(path + ": damaged: header checksum"));
    }

    @Test
    public void secretsAreNeeded() throws IOException {
        Path path = conformance("bloom-secret-apart.petal");
        byte[] wrong = SECRET.clone();
        wrong[0] ^= 1;
        for (byte[] secret : new byte[][] {null, wrong, new byte[15]}) {
            PetalException refused = assertThrows(PetalException.class, () -> PetalFilter.open(path, secret));
            assertEquals(PetalException.Kind.SECRET, refused.kind());
        }
    }

    @Test
    public void damageIsFoundByVerifyOnly() throws IOException {
        Path path = folder.getRoot().toPath().resolve("f.petal");
        byte[] bytes = Files.readAllBytes(conformance("bloom-rapid.petal"));
        bytes[bytes.length - 1] ^= 1;
        Files.write(path, bytes);
        PetalFilter mapped = PetalFilter.map(path);
        mapped.contains("one");
        PetalException damaged = assertThrows(PetalException.class, mapped::verify);
        assertEquals(PetalException.Kind.DAMAGED, damaged.kind());
        assertEquals(240, damaged.offset());
        assertEquals("fetch or build the file again", damaged.advice());
        assertThrows(PetalException.class, () -> PetalFilter.open(path));
    }

    @Test
    public void filtersArePredicates() throws IOException {
        PetalFilter filter = PetalFilter.open(conformance("cascade-rapid.petal"));
        Predicate<String> method = filter::contains;
        assertTrue(method.test("two"));
        assertArrayEquals(new String[] {"one"}, Stream.of("one", "four").filter(filter).toArray());
    }

    @Test
    public void threadsGetEqualAnswers() throws IOException {
        PetalFilter filter = PetalFilter.map(conformance("static-shards.petal"));
        boolean[] expected = new boolean[20_000];
        for (int key = 0; key < expected.length; key++) {
            expected[key] = filter.contains(key + 990_000L);
        }
        boolean equal = IntStream.range(0, 40).parallel().allMatch(round -> IntStream.range(0, expected.length)
                .allMatch(key -> filter.contains(key + 990_000L) == expected[key]));
        assertTrue(equal);
    }

    @Test
    public void queriesOfBytesAndNumbersAllocateNothing() throws IOException {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long thread = Thread.currentThread().getId();
        byte[] bytes = new byte[200];
        for (String name : new String[] {"bloom-sip", "classic-rapid", "static-layers", "static-fuse", "cascade-rapid"}) {
            PetalFilter filter = PetalFilter.map(conformance(name + ".petal"));
            long least = Long.MAX_VALUE;
            for (int round = 0; round < 5; round++) {
                long before = threads.getThreadAllocatedBytes(thread);
                for (long key = 0; key < 10_000; key++) {
                    bytes[0]++;
                    filter.contains(key);
                    filter.contains(bytes);
                }
                least = Math.min(least, threads.getThreadAllocatedBytes(thread) - before);
            }
            assertTrue(name + ": " + least, least < 10_000);
        }
    }

    /** Five gibibytes of a blocked filter, of which only one block is written. */
    @Test
    public void filesOfSeveralPiecesAreMapped() throws IOException {
        byte[] front = Arrays.copyOf(Files.readAllBytes(conformance("bloom-rapid.petal")), 4096);
        long blocks = 5L << 24;
        ConformanceTest.put(front, 24, 64 * blocks);
        ConformanceTest.put(front, 64, blocks);
        ConformanceTest.put(front, 248, Xxh3.hash(Source.of(front, 30), 0, 248));
        Path path = folder.getRoot().toPath().resolve("large.petal");
        long key = 0;
        while (Hash.part(Hash.of(1, 0, 0).of(key), blocks) < 9 * blocks / 10) {
            key++;
        }
        ByteBuffer ones = ByteBuffer.wrap(new byte[64]);
        Arrays.fill(ones.array(), (byte) 0xff);
        try (FileChannel channel =
                FileChannel.open(path, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
            channel.write(ByteBuffer.wrap(front));
            channel.write(ones, 4096 + 64 * Hash.part(Hash.of(1, 0, 0).of(key), blocks));
            channel.write(ByteBuffer.allocate(1), 4095 + 64 * blocks);
        }
        PetalFilter filter = PetalFilter.map(path);
        assertArrayEquals(new long[] {key}, LongStream.range(0, 100_000).filter(filter::contains).toArray());
    }
}
