package truth;

import java.util.ArrayDeque;
import java.util.Deque;

/**
 * One thread, truth-live-1, whose bytes go 25 % into arrays that stay ({@code kept}; the oldest leave when there
 * are 100 MB of them) and 75 % into garbage ({@code dropped}), which a collection four times a second takes away.
 */
final class Live implements Runnable {
    private static final int SIZE = 20_000 + 16;
    private static final int MOST = 5_000;
    private static final long COLLECT_NANOS = 250_000_000;

    static volatile Object garbage;

    private final Deque<byte[]> kept = new ArrayDeque<>();
    private final double bytesPerNano;
    private final Share[] sites = {
        new Share("live.kept.bytes", 25) {
            @Override
            void slice() {
                keep();
                used.plus(SIZE);
            }
        },
        new Share("live.dropped.bytes", 75) {
            @Override
            void slice() {
                drop();
                used.plus(SIZE);
            }
        },
    };

    Live(double megabytes) {
        this.bytesPerNano = megabytes / 1000;
    }

    void start() {
        Truth.inBackground("truth-live-1", this);
    }

    @Override
    public void run() {
        Pace pace = new Pace();
        long collected = System.nanoTime();
        while (true) {
            pace.took((long) (Share.one(sites) / bytesPerNano));
            if (System.nanoTime() - collected > COLLECT_NANOS) {
                System.gc();
                collected = System.nanoTime();
            }
        }
    }

    void keep() {
        kept.add(new byte[SIZE - 16]);
        if (kept.size() > MOST) kept.remove();
    }

    static void drop() {
        garbage = new byte[SIZE - 16];
    }
}
