import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.RandomAccessFile;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/**
 * Holds known amounts of memory of each kind, all of it touched: `Holder heap=100 direct=64 ...`, in MiB; `threads=N` have
 * each used a MiB of stack, and `classes=N` are loaded. Writes `ready pid=N`, takes as much again for each line on
 * stdin that has such words, and ends with its stdin.
 */
public final class Holder {
    private static final int MIB = 1 << 20;
    private static final int PAGE = 4096;
    private static final int SMALL = 65_520;
    private static final List<Object> KEPT = new ArrayList<>();
    private static volatile CountDownLatch STARTED;

    public static void main(String[] words) throws Exception {
        take(words);
        System.out.println("ready pid=" + ManagementFactory.getRuntimeMXBean().getName().split("@")[0]);
        StringBuilder line = new StringBuilder();
        for (int next; (next = System.in.read()) >= 0; ) {
            if (next == '\n') {
                take(line.toString().trim().split(" "));
                line.setLength(0);
                System.out.println("took");
            } else {
                line.append((char) next);
            }
        }
    }

    private static void take(String[] words) throws Exception {
        for (String word : words) {
            String[] parts = word.split("=");
            if (parts.length == 2) {
                take(parts[0], Integer.parseInt(parts[1]));
            }
        }
    }

    private static void take(String kind, int amount) throws Exception {
        switch (kind) {
            case "heap":
                for (int taken = 0; taken < amount; taken++) {
                    KEPT.add(new byte[MIB - 16]);
                }
                break;
            case "direct":
                touch(ByteBuffer.allocateDirect(amount * MIB));
                break;
            case "mapped":
                try (RandomAccessFile file = new RandomAccessFile(System.getProperty("holder.file"), "rw")) {
                    touch(file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, (long) amount * MIB));
                }
                break;
            case "malloc":
                allocate((long) amount * MIB);
                break;
            case "small": // below glibc's threshold: in its arenas
                for (long taken = 0; taken < (long) amount * MIB; taken += SMALL) {
                    allocate(SMALL);
                }
                break;
            case "threads":
                STARTED = new CountDownLatch(amount);
                for (int started = 0; started < amount; started++) {
                    Thread thread = new Thread(null, Holder::useStack, "deep-" + started, MIB);
                    thread.setDaemon(true);
                    thread.start();
                }
                STARTED.await();
                break;
            case "classes":
                for (int loaded = 0; loaded < amount; loaded++) {
                    KEPT.add(new Loader().again());
                }
                break;
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    private static void touch(ByteBuffer buffer) {
        for (int place = 0; place < buffer.capacity(); place += PAGE) {
            buffer.put(place, (byte) 1);
        }
        KEPT.add(buffer);
    }

    private static void allocate(long bytes) throws Exception {
        Field field = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
        field.setAccessible(true);
        Object unsafe = field.get(null);
        Method allocate = unsafe.getClass().getMethod("allocateMemory", long.class);
        Method set = unsafe.getClass().getMethod("setMemory", long.class, long.class, byte.class);
        set.invoke(unsafe, allocate.invoke(unsafe, bytes), bytes, (byte) 1);
    }

    private static void useStack() {
        try {
            descend(0);
        } catch (StackOverflowError end) {
            STARTED.countDown();
        }
        try {
            Thread.sleep(Long.MAX_VALUE);
        } catch (InterruptedException end) {
            throw new IllegalStateException(end);
        }
    }

    private static long descend(long depth) {
        return descend(depth + 1) + depth;
    }

    /** Loads this file's class anew each time. */
    private static final class Loader extends ClassLoader {
        Class<?> again() throws Exception {
            try (InputStream file = Holder.class.getResourceAsStream("Holder.class")) {
                ByteArrayOutputStream bytes = new ByteArrayOutputStream();
                byte[] piece = new byte[PAGE];
                for (int read; (read = file.read(piece)) > 0; ) {
                    bytes.write(piece, 0, read);
                }
                Class<?> made = defineClass("Holder", bytes.toByteArray(), 0, bytes.size());
                return Class.forName(made.getName(), true, this);
            }
        }
    }
}
