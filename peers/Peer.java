/**
 * Shared by the Java peers: the command line (README.md), keys from lines, errors in one line.
 *
 * A subclass makes and reads the filters of its library.
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
    /** A filter of the library, with lines as keys of a variant. */
    interface Filter {
        void add(String line);

        boolean contains(String line);

        void save(OutputStream out) throws IOException;
    }

    /** A class of the library; the name of its jar has the version. */
    abstract Class<?> library();

    abstract Filter make(String variant, long n, double rate) throws Exception;

    abstract Filter open(String variant, InputStream file) throws Exception;

    final void run(String[] args) {
        try {
            execute(args);
        } catch (Throwable error) {
            // Throwable, because a library may throw an Error for a bad file.
            String message = String.valueOf(error).lines().findFirst().orElse("");
            System.err.println(getClass().getSimpleName() + ": " + message);
            System.exit(1);
        }
    }

    private void execute(String[] args) throws Exception {
        switch (args.length == 0 ? "" : args[0] + "/" + args.length) {
            case "version/1" -> System.out.println(version());
            case "write/6" -> {
                Filter filter = make(args[1], Long.parseLong(args[2]), Double.parseDouble(args[3]));
                lines(args[4]).forEach(filter::add);
                // To memory first, so that an error leaves no partial file.
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
                    answers.append(filter.contains(line) ? "1\n" : "0\n");
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

    /** Returns the lines of a file; only LF ends a line. */
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
