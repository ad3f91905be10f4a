/**
 * What the Java peers share: the words of the command line (README.md), keys from lines, one line of trouble.
 *
 * A peer says how to make and how to open a filter of its library.
 */

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

abstract class Peer {
    /** A filter of the library, which takes a line as the variant says. */
    interface Filter {
        void add(String line);

        boolean holds(String line);

        void save(OutputStream out) throws IOException;
    }

    /** A class of the library: the name of the jar that it lies in tells the version. */
    abstract Class<?> library();

    abstract Filter make(String variant, long n, double rate) throws Exception;

    abstract Filter open(String variant, InputStream file) throws Exception;

    final void run(String[] args) {
        try {
            answer(args);
        } catch (Throwable trouble) {
            // Errors too: a library may answer a bad file with one.
            String words = String.valueOf(trouble).lines().findFirst().orElse("");
            System.err.println(getClass().getSimpleName() + ": " + words);
            System.exit(1);
        }
    }

    private void answer(String[] args) throws Exception {
        switch (args.length == 0 ? "" : args[0] + "/" + args.length) {
            case "version/1" -> System.out.println(version());
            case "write/6" -> {
                Filter filter = make(args[1], Long.parseLong(args[2]), Double.parseDouble(args[3]));
                lines(args[4]).forEach(filter::add);
                // To memory first: trouble leaves no half of a file.
                ByteArrayOutputStream file = new ByteArrayOutputStream();
                filter.save(file);
                Files.write(Path.of(args[5]), file.toByteArray());
            }
            case "check/4" -> {
                Filter filter;
                try (InputStream file = Files.newInputStream(Path.of(args[2]))) {
                    filter = open(args[1], file);
                }
                StringBuilder answers = new StringBuilder();
                for (String line : lines(args[3])) {
                    answers.append(filter.holds(line) ? "1\n" : "0\n");
                }
                System.out.print(answers);
            }
            default -> throw new IllegalArgumentException(
                    "version, write VARIANT N RATE MEMBERS OUT, or check VARIANT FILE KEYS");
        }
    }

    private String version() {
        String jar = Path.of(library().getProtectionDomain().getCodeSource().getLocation().getPath()).getFileName().toString();
        return jar.replaceFirst("\\.jar$", "").replaceFirst("-(?=[0-9])", " ");
    }

    /** The lines of a file; only LF ends one. */
    private static List<String> lines(String file) throws IOException {
        String text = Files.readString(Path.of(file));
        if (text.isEmpty()) {
            return List.of();
        }
        String body = text.endsWith("\n") ? text.substring(0, text.length() - 1) : text;
        return List.of(body.split("\n", -1));
    }

    static byte[] utf8(String line) {
        return line.getBytes(StandardCharsets.UTF_8);
    }

    static IllegalArgumentException noSuch(String variant) {
        return new IllegalArgumentException("no such variant: " + variant);
    }
}
