import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Locale;
import java.util.SplittableRandom;

/**
 * A JVM whose profile is known beforehand: one thread gives each of its methods a fixed share of its
 * CPU time, measured on the thread's own CPU clock, so the shares hold on any machine under any load.
 *
 * <pre>java Burner --role alpha|beta|gamma|alloc|mixed [--load 0..1] [--seconds N] [anything else, for selectors]</pre>
 *
 * Shares: the role's hot method 70 %, warm 20 % (below outer and middle), cool 10 %. A load of 0 idles.
 * It writes {@code ready pid=N} once the methods are compiled; a line on stdin asks for its counters,
 * the end of stdin ends it, and so do {@code --seconds}. The last line is the counters again:
 * {@code hot=ns warm=ns cool=ns rounds=n}, rounds being those of the hot method.
 */
public final class Burner {
    private static final int LEAST_SLICE_NANOS = 300_000;
    private static final int SLICE_RANGE_NANOS = 1_400_000;
    private static final long WARM_UP_NANOS = 200_000_000;
    private static final int ROUND = 20_000;
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    /** Slices of unlike length: a steady rhythm would beat with the sampling frequency. Used by one thread. */
    private static final SplittableRandom LENGTHS = new SplittableRandom();

    static volatile long sink;
    static volatile byte[] garbage;

    /** A method with a share; three implementations keep the call from being inlined. */
    abstract static class Work {
        final int percent;
        volatile long nanos;
        volatile long rounds;

        Work(int percent) {
            this.percent = percent;
        }

        abstract long burn(long until);

        final void slice() {
            long before = cpuNanos();
            rounds += burn(before + LEAST_SLICE_NANOS + LENGTHS.nextInt(SLICE_RANGE_NANOS));
            nanos += cpuNanos() - before;
        }
    }

    static final class Warm extends Work {
        Warm() {
            super(20);
        }

        @Override
        long burn(long until) {
            return outer(until);
        }
    }

    static final class Cool extends Work {
        Cool() {
            super(10);
        }

        @Override
        long burn(long until) {
            return cool(until);
        }
    }

    static long cpuNanos() {
        return THREADS.getCurrentThreadCpuTime();
    }

    static long hotAlpha(long until) {
        long rounds = 0;
        do {
            long x = until;
            for (int i = 0; i < ROUND; i++) x = x * 6364136223846793005L + 1442695040888963407L;
            sink = x;
            rounds++;
        } while (cpuNanos() < until);
        return rounds;
    }

    static long hotBeta(long until) {
        long rounds = 0;
        do {
            long x = until | 1;
            for (int i = 0; i < ROUND; i++) x = (x ^ (x << 13)) + (x >>> 7);
            sink = x;
            rounds++;
        } while (cpuNanos() < until);
        return rounds;
    }

    static long hotGamma(long until) {
        long rounds = 0;
        do {
            double x = until;
            for (int i = 0; i < ROUND; i++) x = Math.sqrt(x + i);
            sink = (long) x;
            rounds++;
        } while (cpuNanos() < until);
        return rounds;
    }

    static long hotAlloc(long until) {
        long rounds = 0;
        do {
            for (int i = 0; i < 1000; i++) {
                byte[] bytes = new byte[1024];
                bytes[i] = (byte) rounds;
                garbage = bytes;
            }
            rounds++;
        } while (cpuNanos() < until);
        return rounds;
    }

    static long outer(long until) {
        return middle(until) + 1;
    }

    static long middle(long until) {
        return warm(until) - 1;
    }

    static long warm(long until) {
        long rounds = 0;
        do {
            long x = until;
            for (int i = 0; i < ROUND; i++) x = (x << 1) ^ (x >>> 3) ^ i;
            sink = x;
            rounds++;
        } while (cpuNanos() < until);
        return rounds;
    }

    static long cool(long until) {
        long rounds = 0;
        do {
            int x = (int) until;
            for (int i = 0; i < ROUND; i++) x = 31 * x + (x >> 5);
            sink = x;
            rounds++;
        } while (cpuNanos() < until);
        return rounds;
    }

    private final Work[] works;
    private final double load;

    private Burner(String role, double load) {
        this.works = new Work[] {hotFor(role), new Warm(), new Cool()};
        this.load = load;
    }

    private static Work hotFor(String role) {
        switch (role) {
            case "alpha":
                return new Work(70) {
                    @Override
                    long burn(long until) {
                        return hotAlpha(until);
                    }
                };
            case "beta":
                return new Work(70) {
                    @Override
                    long burn(long until) {
                        return hotBeta(until);
                    }
                };
            case "gamma":
                return new Work(70) {
                    @Override
                    long burn(long until) {
                        return hotGamma(until);
                    }
                };
            case "alloc":
                return new Work(70) {
                    @Override
                    long burn(long until) {
                        return hotAlloc(until);
                    }
                };
            case "mixed":
                return new Mixed();
            default:
                throw new IllegalArgumentException("role is alpha, beta, gamma, alloc or mixed, not " + role);
        }
    }

    /** The work that is furthest behind its share. */
    private Work next() {
        Work behind = works[0];
        for (Work work : works) {
            if (work.nanos * behind.percent < behind.nanos * work.percent) behind = work;
        }
        return behind;
    }

    private void work() {
        long begin = System.nanoTime();
        long used = cpuNanos();
        while (true) {
            next().slice();
            double busy = cpuNanos() - used;
            long ahead = (long) (busy / load) - (System.nanoTime() - begin);
            if (ahead > 5_000_000) pause(ahead);
        }
    }

    private static void pause(long nanos) {
        try {
            Thread.sleep(nanos / 1_000_000, (int) (nanos % 1_000_000));
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private void warmUp() {
        // an almost idle one has no time to spare: fifty of them start at once in the bench
        long end = cpuNanos() + (long) (WARM_UP_NANOS * Math.min(1, 5 * load));
        while (cpuNanos() < end) {
            next().slice();
        }
    }

    private synchronized void report() {
        System.out.println(String.format(Locale.ROOT, "hot=%d warm=%d cool=%d rounds=%d",
            works[0].nanos, works[1].nanos, works[2].nanos, works[0].rounds));
        System.out.flush();
    }

    private void end() {
        report();
        Runtime.getRuntime().halt(0);
    }

    private static String option(String[] arguments, String name, String otherwise) {
        for (int i = 0; i + 1 < arguments.length; i++) {
            if (arguments[i].equals(name)) return arguments[i + 1];
        }
        return otherwise;
    }

    private static void inBackground(String name, Runnable task) {
        Thread thread = new Thread(task, name);
        thread.setDaemon(true);
        thread.start();
    }

    public static void main(String[] arguments) throws IOException {
        double load = Double.parseDouble(option(arguments, "--load", "1"));
        long seconds = Long.parseLong(option(arguments, "--seconds", "0"));
        Burner burner = new Burner(option(arguments, "--role", "alpha"), load);
        if (load > 0) burner.warmUp();
        if (load > 0) inBackground("burner", burner::work);
        if (seconds > 0) inBackground("timer", () -> {
            pause(seconds * 1_000_000_000L);
            burner.end();
        });
        System.out.println("ready pid=" + new File("/proc/self").getCanonicalFile().getName());
        System.out.flush();
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        while (requests.readLine() != null) burner.report();
        burner.end();
    }
}
