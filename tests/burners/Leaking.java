import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * A JVM that allocates native memory and frees it, again and again. For each line on stdin it also allocates some that
 * it keeps, 20 MB in direct buffers and 24 MB in blocks of malloc, and then prints {@code kept direct=N blocks=N}.
 */
public final class Leaking {
    private static final int BLOCK = 60_000;
    private static final int BLOCKS = 400;
    private static final int BUFFER = 1_000_000;
    private static final int BUFFERS = 20;
    private static final MethodHandle ALLOCATE = handle("allocateMemory", long.class);
    private static final MethodHandle FREE = handle("freeMemory", void.class);
    private static final List<Object> KEPT = new ArrayList<>();

    private Leaking() {}

    static void blocks() throws Throwable {
        for (int i = 0; i < BLOCKS; i++) KEPT.add((long) ALLOCATE.invokeExact((long) BLOCK));
    }

    static void direct() {
        for (int i = 0; i < BUFFERS; i++) KEPT.add(ByteBuffer.allocateDirect(BUFFER));
    }

    static void freed() {
        try {
            while (true) {
                for (int i = 0; i < 20; i++) FREE.invokeExact((long) ALLOCATE.invokeExact((long) BLOCK));
                Thread.sleep(1);
            }
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    /** A method of the JDK's Unsafe, which sources for JDK 8 cannot name. */
    private static MethodHandle handle(String name, Class<?> returned) {
        try {
            Class<?> type = Class.forName("sun.misc.Unsafe");
            Field field = type.getDeclaredField("theUnsafe");
            field.setAccessible(true);
            MethodType shape = MethodType.methodType(returned, long.class);
            return MethodHandles.lookup().findVirtual(type, name, shape).bindTo(field.get(null));
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] arguments) throws Throwable {
        Thread thread = new Thread(Leaking::freed, "freed");
        thread.setDaemon(true);
        thread.start();
        String name = ManagementFactory.getRuntimeMXBean().getName();
        System.out.println("ready pid=" + name.substring(0, name.indexOf('@')));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        while (in.readLine() != null) {
            direct();
            blocks();
            System.out.println("kept direct=" + BUFFERS * BUFFER + " blocks=" + BLOCKS * BLOCK);
        }
    }
}
