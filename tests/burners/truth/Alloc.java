package truth;

/**
 * One thread, truth-alloc-1, whose bytes go 20 % into {@code small} objects of 24 bytes, 40 % into {@code medium}
 * arrays of 1,016, 25 % into {@code large} ones of 50,016 and 15 % into {@code huge} ones of 1,000,016 (sizes of a
 * 64-bit JVM with compressed class pointers).
 */
final class Alloc implements Runnable {
    private static final int BATCH_BYTES = 200_000;
    private static final int ARRAY_HEADER = 16;

    static volatile Object garbage;

    static final class Small {
        final long value;

        Small(long value) {
            this.value = value;
        }
    }

    /** One site; objects of one size. */
    private abstract static class Site extends Share {
        final Counters.Sum objects;
        final int size;

        Site(String name, int percent, int size) {
            super("alloc." + name + ".bytes", percent);
            this.objects = new Counters.Sum("alloc." + name + ".objects");
            this.size = size;
        }

        @Override
        final void slice() {
            int count = Math.max(1, BATCH_BYTES / size);
            allocate(count);
            used.plus((long) count * size);
            objects.plus(count);
        }

        abstract void allocate(int count);
    }

    private final Share[] sites = {
        new Site("small", 20, 24) {
            @Override
            void allocate(int count) {
                small(count);
            }
        },
        new Site("medium", 40, 1000 + ARRAY_HEADER) {
            @Override
            void allocate(int count) {
                medium(count);
            }
        },
        new Site("large", 25, 50_000 + ARRAY_HEADER) {
            @Override
            void allocate(int count) {
                large(count);
            }
        },
        new Site("huge", 15, 1_000_000 + ARRAY_HEADER) {
            @Override
            void allocate(int count) {
                huge(count);
            }
        },
    };
    private final double bytesPerNano;

    Alloc(double megabytes) {
        this.bytesPerNano = megabytes / 1000;
    }

    void start() {
        Thread thread = Truth.inBackground("truth-alloc-1", this);
        Counters.add("alloc.thread.bytes", () -> Counters.allocatedBytes(thread));
    }

    @Override
    public void run() {
        Pace pace = new Pace();
        while (true) pace.took((long) (Share.one(sites) / bytesPerNano));
    }

    static void small(int count) {
        for (int i = 0; i < count; i++) garbage = new Small(i);
    }

    static void medium(int count) {
        for (int i = 0; i < count; i++) garbage = new byte[1000];
    }

    static void large(int count) {
        for (int i = 0; i < count; i++) garbage = new byte[50_000];
    }

    static void huge(int count) {
        for (int i = 0; i < count; i++) garbage = new byte[1_000_000];
    }
}
