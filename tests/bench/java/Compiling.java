import java.io.OutputStream;
import java.net.URI;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
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
 * Says "warm" after some seconds, and ends when its stdin does.
 *
 * Compiling SECONDS SOURCE...
 */
public final class Compiling {
    private static final JavaCompiler COMPILER = ToolProvider.getSystemJavaCompiler();

    private Compiling() {}

    public static void main(String[] arguments) throws Exception {
        List<Path> sources = Stream.of(arguments).skip(1).map(Path::of).toList();
        for (int number = 0; number < 2; number++) {
            Thread thread = new Thread(() -> compileForever(sources), "compiling-" + number);
            thread.setDaemon(true);
            thread.start();
        }
        TimeUnit.SECONDS.sleep(Long.parseLong(arguments[0]));
        System.out.println("warm");
        while (System.in.read() >= 0) {
            // Whoever records says when it is enough.
        }
    }

    private static void compileForever(List<Path> sources) {
        List<String> options = List.of("-proc:none", "-implicit:none", "-nowarn");
        while (true) {
            StandardJavaFileManager files = COMPILER.getStandardFileManager(null, null, null);
            var units = files.getJavaFileObjectsFromPaths(sources);
            boolean compiled =
                    COMPILER.getTask(null, new Nowhere(files), null, options, null, units).call();
            if (!compiled) {
                throw new IllegalStateException("the sources have errors");
            }
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
