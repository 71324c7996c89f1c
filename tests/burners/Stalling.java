import java.io.File;

/**
 * A burner ({@code java -Dstalling=FILE Stalling …}, as Burner) whose safepoints are long in coming while FILE
 * is there: for seconds another thread is in a loop that the compiler left without a place to stop at.
 *
 * <p>Such are loops that count an int, without {@code -XX:+UseCountedLoopSafepoints}.
 */
public final class Stalling {
    private static final int SHORT = 20_000;
    private static final int COMPILED_AFTER = 2_000;
    private static final int LONG = 1_000_000_000;

    static volatile long sink;

    private Stalling() {}

    /** Some nanoseconds a round, and no safepoint among them. */
    static long count(int rounds) {
        long x = rounds;
        for (int i = 0; i < rounds; i++) x = x * 6364136223846793005L + 1442695040888963407L;
        return x;
    }

    private static void stall(File file) {
        for (int i = 0; i < COMPILED_AFTER; i++) sink = count(SHORT);
        try {
            while (true) {
                if (file.exists()) sink = count(LONG);
                Thread.sleep(100);
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Thread thread = new Thread(() -> stall(new File(System.getProperty("stalling"))), "stalling");
        thread.setDaemon(true);
        thread.start();
        Burner.main(arguments);
    }
}
