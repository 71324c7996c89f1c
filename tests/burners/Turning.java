import java.io.File;
import java.io.IOException;
import java.util.Scanner;

/**
 * A JVM that does what the last line on its stdin says: {@code early} or {@code late} takes half a core in a method of that
 * name, {@code gc} collects garbage all the time. After 12 s of {@code late} it writes that word.
 */
public final class Turning {
    private static volatile String mode = "";
    private static long number = 1;

    private static void early(long until) {
        while (System.nanoTime() < until) for (int i = 0; i < 1000; i++) number = number * 31 + 7;
    }

    private static void late(long until) {
        while (System.nanoTime() < until) for (int i = 0; i < 1000; i++) number = number * 17 + 3;
    }

    private static void work() {
        while (true) {
            long until = System.nanoTime() + 25_000_000L;
            if (mode.equals("early")) early(until);
            if (mode.equals("late")) late(until);
            if (mode.equals("gc")) System.gc();
            else pause();
        }
    }

    private static void pause() {
        try {
            Thread.sleep(25);
        } catch (InterruptedException ended) {
            throw new IllegalStateException(ended);
        }
    }

    private static void sayLate() {
        long begin = System.nanoTime();
        while (System.nanoTime() - begin < 12_000_000_000L) pause();
        System.out.println("late");
    }

    private static void background(Runnable work) {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        thread.start();
    }

    public static void main(String[] arguments) throws IOException {
        background(Turning::work);
        System.out.println("ready pid=" + new File("/proc/self").getCanonicalFile().getName());
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            mode = lines.nextLine().trim();
            if (mode.equals("late")) background(Turning::sayLate);
        }
    }
}
