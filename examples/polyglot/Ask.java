import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import petal.PetalFilter;

/** Prints the lines of the input that a filter file may contain. */
public class Ask {
    public static void main(String[] args) throws Exception {
        PetalFilter filter = PetalFilter.open(Path.of(args[0]));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))
                .lines().filter(filter).forEach(out::println);
        out.flush();
    }
}
