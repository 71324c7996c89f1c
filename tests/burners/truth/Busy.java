package truth;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Threads, truth-busy-N, that never rest and go through thousands of different stacks, 10 to 70 frames deep. */
final class Busy implements Runnable {
    private static final int LEAST_DEPTH = 4;
    private static final int MOST_DEPTH = 32;
    private static final int WORDS = 60;

    static volatile long sink;

    private final int seed;
    private final Counters.Sum rounds;

    private Busy(int seed) {
        this.seed = seed;
        this.rounds = new Counters.Sum("busy." + seed + ".rounds");
    }

    static void start(int threads) {
        for (int i = 0; i < threads; i++) Truth.inBackground("truth-busy-" + i, new Busy(i + 1));
    }

    private interface Step {
        long take(int depth, long path);
    }

    private static final Step[] STEPS = {Busy::even, Busy::odd, (depth, path) -> step(depth, path) + 1, new Through()};

    private static final class Through implements Step {
        @Override
        public long take(int depth, long path) {
            return step(depth, path) - 1;
        }
    }

    @Override
    public void run() {
        long random = seed;
        while (true) {
            random = random * 6364136223846793005L + 1442695040888963407L;
            int depth = LEAST_DEPTH + (int) ((random >>> 58) % (MOST_DEPTH - LEAST_DEPTH));
            sink = step(depth, (random >>> 40) & 0x3f);
            rounds.plus(1);
        }
    }

    private static long step(int depth, long path) {
        if (depth == 0) return work(path);
        return STEPS[(int) (path & 3)].take(depth - 1, path >>> 2 | (path & 3) << 10);
    }

    private static long even(int depth, long path) {
        return step(depth, path) ^ path;
    }

    private static long odd(int depth, long path) {
        return step(depth, path) + depth;
    }

    private static long work(long path) {
        List<Integer> words = new ArrayList<>(WORDS);
        for (int i = 0; i < WORDS; i++) words.add((int) (path * 31 + i * 7919L) % 1009);
        Collections.sort(words);
        long sum = 0;
        for (int word : words) sum = sum * 131 + word;
        return sum;
    }
}
