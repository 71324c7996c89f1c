package truth;

/** Threads, truth-deep-N, that allocate at the ends of stacks of which hardly two are alike: what is folded is large. */
final class Deep implements Runnable {
    private static final int DEPTH = 40;
    private static final int BYTES = 8192;

    static volatile Object garbage;

    private final Counters.Sum rounds;
    private long random;

    private Deep(int seed) {
        this.random = seed;
        this.rounds = new Counters.Sum("deep." + seed + ".rounds");
    }

    static void start(int threads) {
        for (int i = 0; i < threads; i++) Truth.inBackground("truth-deep-" + i, new Deep(i + 1));
    }

    @Override
    public void run() {
        while (true) {
            random = random * 6364136223846793005L + 1442695040888963407L;
            step(DEPTH, random >>> 16);
            rounds.plus(1);
        }
    }

    private static void step(int depth, long path) {
        if (depth == 0) garbage = new byte[BYTES];
        else if ((path & 1) == 0) even(depth - 1, path >> 1);
        else odd(depth - 1, path >> 1);
    }

    private static void even(int depth, long path) {
        step(depth, path);
    }

    private static void odd(int depth, long path) {
        step(depth, path);
    }
}
