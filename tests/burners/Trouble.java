import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;

/**
 * A JVM in trouble of its own: {@code java Trouble threads|heap}.
 *
 * <p>threads: they are born and die all the time. heap: it is nearly full, so that one full collection follows
 * the other. It writes {@code ready pid=N}; a line on stdin asks how far it came ({@code rounds=N}), the end of
 * stdin ends it.
 */
public final class Trouble {
    private static final int THREADS = 16;
    private static final int ROUND = 20_000;
    private static final double FULL = 0.9;
    private static final int PIECE = 1 << 12;

    static volatile long rounds;
    static volatile Object garbage;

    private static void threads() throws InterruptedException {
        while (true) {
            List<Thread> born = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) born.add(new Thread(Trouble::work, "short-lived-" + i));
            for (Thread thread : born) thread.start();
            for (Thread thread : born) thread.join();
            rounds++;
        }
    }

    private static void work() {
        long x = System.nanoTime();
        for (int i = 0; i < ROUND; i++) x = x * 6364136223846793005L + 1442695040888963407L;
        garbage = x;
    }

    private static void heap() {
        List<byte[]> kept = new ArrayList<>();
        Runtime runtime = Runtime.getRuntime();
        while (runtime.totalMemory() - runtime.freeMemory() < FULL * runtime.maxMemory()) kept.add(new byte[PIECE]);
        while (true) {
            System.gc();
            for (int i = 0; i < 8; i++) garbage = new byte[PIECE];
            rounds += kept.isEmpty() ? 0 : 1;
        }
    }

    private static void trouble(String kind) {
        try {
            if (kind.equals("threads")) threads();
            else heap();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] arguments) throws IOException {
        Thread maker = new Thread(() -> trouble(arguments[0]), "trouble");
        maker.setDaemon(true);
        maker.start();
        System.out.println("ready pid=" + new File("/proc/self").getCanonicalFile().getName());
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        while (requests.readLine() != null) System.out.println("rounds=" + rounds);
        Runtime.getRuntime().halt(0);
    }
}
