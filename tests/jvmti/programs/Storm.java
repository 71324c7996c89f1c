import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongUnaryOperator;

/**
 * Two threads load, compile and discard classes all the time. Answers a line on stdin with the number of classes so
 * far; ends with its stdin.
 */
public final class Storm {
    private static final int TO_COMPILE = 2000;
    private static final int CLASSES_BEFORE_COLLECTION = 20;
    private static final AtomicLong LOADED = new AtomicLong();
    private static volatile long sink;

    /** Loaded again and again. */
    public static final class Leaf implements LongUnaryOperator {
        private static long step(long x) {
            return x * 31 + 7;
        }

        private static long twice(long x) {
            return step(step(x));
        }

        @Override
        public long applyAsLong(long x) {
            LongUnaryOperator more = y -> twice(y) ^ x;
            return more.applyAsLong(twice(x));
        }
    }

    private static final class Loader extends ClassLoader {
        Class<?> define(byte[] content) {
            return defineClass(Leaf.class.getName(), content, 0, content.length);
        }
    }

    private static byte[] bytesOfLeaf() throws Exception {
        try (InputStream in = Storm.class.getResourceAsStream("Storm$Leaf.class")) {
            ByteArrayOutputStream all = new ByteArrayOutputStream();
            for (int b = in.read(); b >= 0; b = in.read()) all.write(b);
            return all.toByteArray();
        }
    }

    private static void loadAndCompile(byte[] content) throws Exception {
        LongUnaryOperator leaf = (LongUnaryOperator) new Loader().define(content).getConstructor().newInstance();
        for (int i = 0; i < TO_COMPILE; i++) sink = leaf.applyAsLong(sink);
        if (LOADED.incrementAndGet() % CLASSES_BEFORE_COLLECTION == 0) System.gc();
    }

    private static void storm() {
        try {
            byte[] content = bytesOfLeaf();
            while (true) loadAndCompile(content);
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < 2; i++) {
            Thread thread = new Thread(Storm::storm, "storm");
            thread.setDaemon(true);
            thread.start();
        }
        System.out.println("ready pid=0");
        System.out.flush();
        for (int b = System.in.read(); b >= 0; b = System.in.read()) {
            if (b != '\n') continue;
            System.out.println("loaded " + LOADED.get());
            System.out.flush();
        }
    }
}
