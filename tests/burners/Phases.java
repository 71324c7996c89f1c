import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.concurrent.Semaphore;

/**
 * A JVM that does something else every half second, by the wall clock: one thread burns in another method, one rests
 * in another method, and one waits for a lock for another time.
 *
 * <p>It writes {@code ready pid=N}. A line on stdin asks for its phases: {@code phases KIND=FROM-TO ...}, in
 * milliseconds since 1970, the last sixty that are over. KIND is one or two.
 */
public final class Phases {
    private static final int LENGTH = 500;
    private static final int LAST = 60;
    private static final int ROUND = 2_000;
    /** Milliseconds of each wait for the lock. */
    private static final int SHORT = 5;
    private static final int LONG = 40;

    private static final StringBuilder[] over = new StringBuilder[LAST];
    private static final Object lock = new Object();
    private static final Semaphore held = new Semaphore(0);
    private static final Semaphore had = new Semaphore(0);
    private static int phases;
    private static volatile long sink;

    private Phases() {}

    static void burnOne(long until) {
        do {
            long x = until;
            for (int i = 0; i < ROUND; i++) x = x * 6364136223846793005L + 1442695040888963407L;
            sink = x;
        } while (System.currentTimeMillis() < until);
    }

    static void burnTwo(long until) {
        do {
            double x = until;
            for (int i = 0; i < ROUND; i++) x = Math.sqrt(x + i);
            sink = (long) x;
        } while (System.currentTimeMillis() < until);
    }

    static void restOne(long until) {
        sleep(until - System.currentTimeMillis());
    }

    static void restTwo(long until) {
        sleep(until - System.currentTimeMillis());
    }

    static void waitForLock() {
        synchronized (lock) {
            sink++;
        }
    }

    private static void sleep(long milliseconds) {
        try {
            if (milliseconds > 0) Thread.sleep(milliseconds);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static boolean isOne(long now) {
        return now / LENGTH % 2 == 0;
    }

    private static void burn() {
        while (true) {
            long from = System.currentTimeMillis();
            long until = (from / LENGTH + 1) * LENGTH;
            boolean one = isOne(from);
            if (one) burnOne(until); else burnTwo(until);
            note(new StringBuilder(one ? "one=" : "two=").append(from).append('-').append(System.currentTimeMillis()));
        }
    }

    private static synchronized void note(StringBuilder phase) {
        over[phases++ % LAST] = phase;
    }

    private static void rest() {
        while (true) {
            long from = System.currentTimeMillis();
            long until = (from / LENGTH + 1) * LENGTH;
            if (isOne(from)) restOne(until); else restTwo(until);
        }
    }

    /** Holds the lock while the other waits for it. */
    private static void hold() {
        while (true) {
            synchronized (lock) {
                held.release();
                sleep(isOne(System.currentTimeMillis()) ? SHORT : LONG);
            }
            had.acquireUninterruptibly();
        }
    }

    private static void waitOften() {
        while (true) {
            held.acquireUninterruptibly();
            waitForLock();
            had.release();
        }
    }

    private static synchronized void report() {
        StringBuilder line = new StringBuilder("phases");
        for (int i = Math.max(0, phases - LAST); i < phases; i++) line.append(' ').append(over[i % LAST]);
        System.out.println(line);
        System.out.flush();
    }

    private static void inBackground(String name, Runnable task) {
        Thread thread = new Thread(task, name);
        thread.setDaemon(true);
        thread.start();
    }

    public static void main(String[] arguments) throws IOException {
        inBackground("burning", Phases::burn);
        inBackground("resting", Phases::rest);
        inBackground("holding", Phases::hold);
        inBackground("waiting", Phases::waitOften);
        // Both methods are compiled by then.
        sleep(2 * LENGTH);
        System.out.println("ready pid=" + new File("/proc/self").getCanonicalFile().getName());
        System.out.flush();
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        while (requests.readLine() != null) report();
        Runtime.getRuntime().halt(0);
    }
}
