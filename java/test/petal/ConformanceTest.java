package petal;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.Test;

/** The set in testdata/conformance, which docs/reference/readers.md describes. */
public class ConformanceTest {
    static final Path SET = Path.of("testdata/conformance");
    private static final List<String> NOT_QUERIED = List.of("quotient", "vector-quotient", "scalable", "windowed");
    private static final Pattern FIELD = Pattern.compile("\"(\\w+)\":(?:\"([^\"]*)\"|(\\[\\[.*?\\]\\]|\\[\\]|\\w+))");
    private static final Pattern EDIT = Pattern.compile("\\[(\\d+),\"(\\w*)\"\\]");

    /** The seconds for random edits: PETAL_FUZZ_SECONDS, or 10. */
    private static final long FUZZ_SECONDS =
            Long.parseLong(System.getenv().getOrDefault("PETAL_FUZZ_SECONDS", "10"));

    /** Small pieces, so that every file has some. */
    private static final int[] LOGS = {Source.LOG, 7};

    /** Returns the fields of each line. */
    static List<Map<String, String>> lines(String name) throws IOException {
        List<Map<String, String>> lines = new ArrayList<>();
        for (String line : Files.readAllLines(SET.resolve(name))) {
            Map<String, String> fields = new HashMap<>();
            for (Matcher field = FIELD.matcher(line); field.find(); ) {
                String text = field.group(2);
                // The only escape in the set.
                fields.put(field.group(1), text == null ? field.group(3) : text.replace("\\t", "\t"));
            }
            lines.add(fields);
        }
        return lines;
    }

    static byte[] bytes(String hex) {
        byte[] bytes = new byte[hex.length() / 2];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
        }
        return bytes;
    }

    static byte[] secret(Map<String, String> line) {
        return line.get("secret").equals("null") ? null : bytes(line.get("secret"));
    }

    private static PetalFilter unverified(byte[] file, byte[] secret, int log) throws PetalException {
        return new PetalFilter(Source.of(file, log), secret, null);
    }

    @Test
    public void filesHaveTheirAnswers() throws IOException {
        List<Map<String, String>> files = lines("files.jsonl");
        assertEquals(60, files.size());
        for (Map<String, String> file : files) {
            Path path = SET.resolve(file.get("file"));
            if (NOT_QUERIED.contains(file.get("type"))) {
                PetalException refused = assertThrows(PetalException.class, () -> PetalFilter.open(path));
                assertEquals(PetalException.Kind.UNSUPPORTED, refused.kind());
                assertTrue(refused.getMessage(), refused.getMessage().contains(" " + file.get("type") + ";"));
                continue;
            }
            byte[] bytes = Files.readAllBytes(path);
            List<PetalFilter> filters = new ArrayList<>(List.of(
                    PetalFilter.open(path, secret(file)),
                    PetalFilter.map(path, secret(file)),
                    PetalFilter.fromBytes(bytes, secret(file))));
            for (int log : LOGS) {
                Source read = Source.read(new ByteArrayInputStream(bytes), bytes.length, log);
                filters.add(new PetalFilter(read, secret(file), null));
                filters.add(unverified(bytes, secret(file), log));
            }
            List<Map<String, String>> keys = lines(file.get("file").replace(".petal", ".jsonl"));
            assertTrue(keys.size() >= 67);
            for (PetalFilter filter : filters) {
                assertEquals(file.get("type"), filter.type());
                filter.verify();
                keys.forEach(key -> assertAnswer(path, filter, key));
            }
        }
        String metadata = PetalFilter.open(SET.resolve("bloom-metadata.petal")).metadata();
        assertEquals("{\"source\":\"布隆\",\"note\":\"x\"}", metadata);
    }

    private static void assertAnswer(Path path, PetalFilter filter, Map<String, String> line) {
        boolean present;
        byte[] key;
        if (line.containsKey("text")) {
            key = line.get("text").getBytes(StandardCharsets.UTF_8);
            present = filter.contains(line.get("text"));
            assertEquals(present, filter.test(new StringBuilder(line.get("text"))));
        } else if (line.containsKey("number")) {
            long number = new BigInteger(line.get("number")).longValue();
            key = new byte[8];
            for (int i = 0; i < 8; i++) {
                key[i] = (byte) (number >>> 8 * i);
            }
            present = filter.contains(number);
        } else {
            key = bytes(line.get("bytes"));
            present = filter.contains(key);
        }
        String where = path + ": " + line;
        assertEquals(where, Long.parseUnsignedLong(line.get("hash"), 16), filter.hash(key));
        assertEquals(where, Boolean.parseBoolean(line.get("present")), present);
        assertEquals(where, present, filter.contains(key));
    }

    @Test
    public void hashesAreThoseOfTheSet() throws IOException {
        List<Map<String, String>> lines = lines("hashes.jsonl");
        assertEquals(232, lines.size());
        for (Map<String, String> line : lines) {
            byte[] seed = bytes(line.get("seed"));
            int algorithm = Integer.parseInt(line.get("algorithm"));
            Hash hash = Hash.of(algorithm, Hash.word(seed, 0), Hash.word(seed, 8));
            byte[] key = bytes(line.get("key"));
            long expected = Long.parseUnsignedLong(line.get("hash"), 16);
            assertEquals(line.toString(), expected, hash.of(key));
            if (key.length == 8) {
                assertEquals(line.toString(), expected, hash.of(Hash.word(key, 0)));
            }
        }
    }

    @Test
    public void hostileFilesAreRefused() throws IOException {
        Map<String, String> types = new HashMap<>();
        for (Map<String, String> file : lines("files.jsonl")) {
            types.put(file.get("file"), file.get("type"));
        }
        List<Map<String, String>> lines = lines("hostile.jsonl");
        assertTrue(lines.size() > 1000);
        for (Map<String, String> line : lines) {
            byte[] file = Files.readAllBytes(SET.resolve(line.get("file")));
            for (Matcher edit = EDIT.matcher(line.get("edits")); edit.find(); ) {
                byte[] written = bytes(edit.group(2));
                System.arraycopy(written, 0, file, Integer.parseInt(edit.group(1)), written.length);
            }
            byte[] hostile = Arrays.copyOf(file, Integer.parseInt(line.get("length")));
            PetalException refused = assertThrows(line.toString(), PetalException.class,
                    () -> PetalFilter.fromBytes(hostile));
            String kind = refused.kind().name().toLowerCase();
            boolean queried = !NOT_QUERIED.contains(types.get(line.get("file")));
            assertTrue(line + ": " + refused, kind.equals(line.get("error")) || !queried && kind.equals("unsupported"));
            assertQueriesReturn(hostile, null);
        }
    }

    /** Opens a file without verifying it, if that is possible, and asks it. */
    private static void assertQueriesReturn(byte[] file, byte[] secret) {
        for (int log : LOGS) {
            try {
                PetalFilter filter = unverified(file, secret, log);
                for (long key = 0; key < 40; key++) {
                    filter.contains(key);
                    filter.contains("key " + key);
                }
                filter.verify();
            } catch (PetalException refused) {
                assertTrue(refused.getMessage(), refused.getMessage().contains("; "));
            }
        }
    }

    @Test
    public void randomEditsAreRefusedOrQueried() throws IOException {
        Random random = new Random(20);
        List<byte[]> files = new ArrayList<>();
        for (Map<String, String> file : lines("files.jsonl")) {
            if (!NOT_QUERIED.contains(file.get("type")) && secret(file) == null) {
                files.add(Files.readAllBytes(SET.resolve(file.get("file"))));
            }
        }
        int opened = 0;
        int refused = 0;
        for (long end = System.nanoTime() + FUZZ_SECONDS * 1_000_000_000; System.nanoTime() < end; ) {
            byte[] file = files.get(random.nextInt(files.size())).clone();
            int dataAt = (int) Hash.word(file, 16);
            int[] places = {10, 24, 36, 38, 40, 64, 72, 88, 96 + 8 * random.nextInt(7), dataAt + 8 * random.nextInt(24)};
            for (int edits = 1 + random.nextInt(3); edits > 0; edits--) {
                int place = random.nextInt(4) > 0 ? places[random.nextInt(places.length)] : random.nextInt(file.length);
                long change = random.nextBoolean() ? 1 << random.nextInt(4) : 1L << random.nextInt(64);
                int size = random.nextInt(3) == 0 ? 1 : place < 64 ? 2 : 8;
                for (int i = 0; i < size && place + i < file.length; i++) {
                    file[place + i] ^= (byte) (change >>> 8 * i);
                }
            }
            if (random.nextInt(10) == 0) {
                file = Arrays.copyOf(file, Math.max(dataAt, file.length + 64 * (random.nextInt(3) - 1)));
            }
            repair(file, dataAt);
            try {
                new PetalFilter(Source.of(file, Source.LOG), null, null);
                opened++;
            } catch (PetalException e) {
                refused++;
            }
            assertQueriesReturn(file, null);
        }
        String counts = opened + " opened, " + refused + " refused";
        System.out.println("random edits: " + counts);
        assertTrue(counts, opened > 1000 && refused > 1000);
    }

    /** Writes the right length and checksums. */
    private static void repair(byte[] file, int dataAt) {
        int length = file.length - dataAt;
        put(file, 24, length);
        // A length that is no multiple of 64 has no valid checksum.
        put(file, 240, length % 64 == 0 ? Xxh3.hash(Source.of(file, 30), dataAt, length) : 0);
        int metadata = (int) Hash.word(file, 32) & 0xfffff;
        metadata = Math.min(metadata, dataAt - 256);
        byte[] summed = Arrays.copyOf(file, 248 + metadata);
        System.arraycopy(file, 256, summed, 248, metadata);
        put(file, 248, Xxh3.hash(Source.of(summed, 30), 0, summed.length));
    }

    static void put(byte[] file, int at, long word) {
        for (int i = 0; i < 8; i++) {
            file[at + i] = (byte) (word >>> 8 * i);
        }
    }
}
