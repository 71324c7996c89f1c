import java.io.OutputStream;
import java.net.URI;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Stream;
import javax.tools.FileObject;
import javax.tools.ForwardingJavaFileManager;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileManager;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/**
 * A JVM with the stacks of a real program to record: two threads that compile Java sources, over and over.
 * Says "warm" after so many rounds, when most of the compiler is compiled itself, and ends when its stdin does.
 *
 * Compiling ROUNDS SOURCE...
 */
public final class Compiling {
    private static final JavaCompiler COMPILER = ToolProvider.getSystemJavaCompiler();

    private Compiling() {}

    public static void main(String[] arguments) throws Exception {
        CountDownLatch rounds = new CountDownLatch(Integer.parseInt(arguments[0]));
        List<Path> sources = Stream.of(arguments).skip(1).map(Path::of).toList();
        for (int number = 0; number < 2; number++) {
            Thread thread = new Thread(() -> compileForever(sources, rounds), "compiling-" + number);
            thread.setDaemon(true);
            thread.start();
        }
        rounds.await();
        System.out.println("warm");
        while (System.in.read() >= 0) {
            // Whoever records says when it is enough.
        }
    }

    private static void compileForever(List<Path> sources, CountDownLatch rounds) {
        List<String> options = List.of("-proc:none", "-implicit:none", "-nowarn");
        while (true) {
            StandardJavaFileManager files = COMPILER.getStandardFileManager(null, null, null);
            var units = files.getJavaFileObjectsFromPaths(sources);
            boolean compiled =
                    COMPILER.getTask(null, new Nowhere(files), null, options, null, units).call();
            if (!compiled) {
                throw new IllegalStateException("the sources have errors");
            }
            rounds.countDown();
        }
    }

    /** Throws away what the compiler writes. */
    private static final class Nowhere extends ForwardingJavaFileManager<JavaFileManager> {
        Nowhere(JavaFileManager files) {
            super(files);
        }

        @Override
        public JavaFileObject getJavaFileForOutput(
                Location location, String name, JavaFileObject.Kind kind, FileObject sibling) {
            return new SimpleJavaFileObject(URI.create("nowhere:///" + name.replace('.', '/')), kind) {
                @Override
                public OutputStream openOutputStream() {
                    return OutputStream.nullOutputStream();
                }
            };
        }
    }
}
