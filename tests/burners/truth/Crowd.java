package truth;

import java.util.SplittableRandom;
import java.util.concurrent.atomic.LongAdder;

/** Many threads, truth-crowd-N, that take turns at {@code turn} and together use an eighth of a core. */
final class Crowd {
    private static final double LOAD = 0.125;
    private static final long SLICE_NANOS = 1_000_000;
    private static final int ROUND = 20_000;

    static volatile long sink;

    private final LongAdder used = new LongAdder();
    private final int threads;

    Crowd(int threads) {
        this.threads = threads;
    }

    void start() {
        Counters.add("crowd.ns", used::sum);
        for (int i = 0; i < threads; i++) Truth.inBackground("truth-crowd-" + i, this::run);
    }

    /** Rests are of unlike length, or all would wake at once. */
    private void run() {
        SplittableRandom lengths = new SplittableRandom(Thread.currentThread().getId());
        Truth.sleep(lengths.nextLong(rest(SLICE_NANOS)));
        while (true) {
            long before = Counters.cpuNanos();
            turn(before + SLICE_NANOS);
            long burnt = Counters.cpuNanos() - before;
            used.add(burnt);
            Truth.sleep((long) (rest(burnt) * (0.5 + lengths.nextDouble())));
        }
    }

    private long rest(long burnt) {
        return (long) (burnt * threads / LOAD);
    }

    static void turn(long until) {
        do {
            long x = until;
            for (int i = 0; i < ROUND; i++) x = x * 6364136223846793005L + 1442695040888963407L;
            sink = x;
        } while (Counters.cpuNanos() < until);
    }
}
