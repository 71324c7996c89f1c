package truth;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Field;

/**
 * One thread, truth-memory-1, whose malloc'ed bytes go 20 % into {@code small} blocks of 4 kB, 30 % into
 * {@code medium} ones of 64 kB and 50 % into {@code large} ones of 1 MB. All are freed at once.
 */
final class NativeMemory implements Runnable {
    private static final int BATCH_BYTES = 200_000;
    private static final MethodHandle ALLOCATE = handle("allocateMemory", long.class);
    private static final MethodHandle FREE = handle("freeMemory", void.class);

    /** One site; blocks of one size. */
    private abstract static class Site extends Share {
        final Counters.Sum blocks;
        final int size;

        Site(String name, int percent, int size) {
            super("memory." + name + ".bytes", percent);
            this.blocks = new Counters.Sum("memory." + name + ".blocks");
            this.size = size;
        }

        @Override
        final void slice() {
            int count = Math.max(1, BATCH_BYTES / size);
            try {
                for (int i = 0; i < count; i++) FREE.invokeExact(allocate(size));
            } catch (Throwable e) {
                throw new IllegalStateException(e);
            }
            used.plus((long) count * size);
            blocks.plus(count);
        }

        abstract long allocate(long size) throws Throwable;
    }

    private final Share[] sites = {
        new Site("small", 20, 4_000) {
            @Override
            long allocate(long size) throws Throwable {
                return small(size);
            }
        },
        new Site("medium", 30, 64_000) {
            @Override
            long allocate(long size) throws Throwable {
                return medium(size);
            }
        },
        new Site("large", 50, 1_000_000) {
            @Override
            long allocate(long size) throws Throwable {
                return large(size);
            }
        },
    };
    private final double bytesPerNano;

    NativeMemory(double megabytes) {
        this.bytesPerNano = megabytes / 1000;
    }

    void start() {
        Truth.inBackground("truth-memory-1", this);
    }

    @Override
    public void run() {
        Pace pace = new Pace();
        while (true) pace.took((long) (Share.one(sites) / bytesPerNano));
    }

    static long small(long size) throws Throwable {
        return (long) ALLOCATE.invokeExact(size);
    }

    static long medium(long size) throws Throwable {
        return (long) ALLOCATE.invokeExact(size);
    }

    static long large(long size) throws Throwable {
        return (long) ALLOCATE.invokeExact(size);
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
}
