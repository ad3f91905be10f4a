package petal;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.junit.Assume.assumeTrue;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.Before;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;

/** The code of docs/guides/java.md prints what its comments say. PETAL is the path of the program. */
public class GuideTest {
    /** Begins with petal.jar. */
    private static final String CLASSES = System.getProperty("java.class.path");

    private static final String BIN = System.getProperty("java.home") + "/bin/";
    private static final Pattern BLOCK = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL);
    private static final Pattern CLASS = Pattern.compile("public class (\\w+)");
    private static final Pattern PRINTED = Pattern.compile("println\\(.*\\); +// (.*)");

    @Rule
    public final TemporaryFolder folder = new TemporaryFolder();

    private final List<String> blocks = new ArrayList<>();

    @Before
    public void build() throws Exception {
        String page = Files.readString(Path.of("docs/guides/java.md"));
        for (Matcher block = BLOCK.matcher(page); block.find(); ) {
            blocks.add(block.group(1));
        }
        assertEquals(3, blocks.size());
        assumeTrue("PETAL is not set", System.getenv("PETAL") != null);
        StringBuilder commands = new StringBuilder("set -e; petal() { \"$PETAL\" \"$@\"; };");
        Matcher command = Pattern.compile("\\$ ((?:seq|petal) .*\n)").matcher(page);
        while (command.find()) {
            commands.append(command.group(1));
        }
        run(List.of("bash", "-c", commands.toString()));
        assertTrue(Files.exists(folder.getRoot().toPath().resolve("known.petal")));
    }

    @Test
    public void codeOfTheGuidePrintsItsComments() throws Exception {
        for (String block : blocks.subList(0, 2)) {
            String name = compile(block, CLASSES);
            assertEquals(printed(block), run(List.of(BIN + "java", "-cp", "." + File.pathSeparator + CLASSES, name)));
        }
    }

    @Test
    public void codeForSparkPrintsItsComments() throws Exception {
        String spark = System.getenv("SPARK_HOME");
        assumeTrue("SPARK_HOME is not set", spark != null);
        String name = compile(blocks.get(2), CLASSES + File.pathSeparator + spark + "/jars/*");
        run(List.of("bash", "-c", BIN + "jar --create --file app.jar *.class"));
        String jar = CLASSES.split(File.pathSeparator)[0];
        assertEquals(printed(blocks.get(2)), run(List.of("env", "SPARK_LOCAL_IP=127.0.0.1", spark + "/bin/spark-submit",
                "--master", "local[2]", "--conf", "spark.ui.enabled=false", "--jars", jar, "--class", name, "app.jar")));
    }

    /** Compiles a block into the folder with the filter, and returns the name of its class. */
    private String compile(String block, String classes) throws Exception {
        Matcher name = CLASS.matcher(block);
        assertTrue(name.find());
        Files.writeString(folder.getRoot().toPath().resolve(name.group(1) + ".java"), block);
        run(List.of(BIN + "javac", "-cp", classes, "-d", ".", name.group(1) + ".java"));
        return name.group(1);
    }

    /** Returns the lines that a block says it prints. */
    private static String printed(String block) {
        StringBuilder printed = new StringBuilder();
        for (Matcher line = PRINTED.matcher(block); line.find(); ) {
            printed.append(line.group(1)).append('\n');
        }
        return printed.toString();
    }

    /** Runs a command in the folder and returns its standard output. */
    private String run(List<String> command) throws IOException, InterruptedException {
        File errors = folder.newFile();
        Process process = new ProcessBuilder(command).directory(folder.getRoot()).redirectError(errors).start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(command + "\n" + Files.readString(errors.toPath()), 0, process.waitFor());
        return output;
    }
}
