/**
 * A hot method into which others are inlined, by the JVM's options. At least two thirds of its time is in left (through
 * middle), the rest in right. Says "ready" when it is compiled; ends with its stdin.
 */
public final class Inlined {
    private static final int TO_COMPILE = 3000;
    private static volatile long sink;

    static long left(long x) {
        for (int i = 0; i < 70_000; i++) x = x * 6364136223846793005L + 1442695040888963407L;
        return x;
    }

    static long right(long x) {
        for (int i = 0; i < 30_000; i++) x = x * 6364136223846793005L + 1442695040888963407L;
        return x;
    }

    static long middle(long x) {
        return left(x) + 1;
    }

    static long hot(long x) {
        return middle(x) ^ right(x);
    }

    private static void burn() {
        while (true) sink = hot(sink);
    }

    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < TO_COMPILE; i++) sink = hot(sink);
        Runnable burning = () -> burn();
        Thread thread = new Thread(burning, "burner");
        thread.setDaemon(true);
        thread.start();
        System.out.println("ready pid=0");
        System.out.flush();
        while (System.in.read() >= 0) continue;
    }
}
