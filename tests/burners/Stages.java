import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;

/**
 * {@code java Stages THREADS IDLE MILLISECONDS} runs tasks like a Spark executor: each takes its thread's name, is of
 * one of two stages, and burns its stage's own method for MILLISECONDS. IDLE more threads only wait.
 *
 * <p>A line on stdin is answered with the tasks and the rounds burnt so far; the end of stdin ends it.
 */
public final class Stages {
    private static final int BATCH = 20_000;
    private static final AtomicInteger TASKS = new AtomicInteger();
    private static final LongAdder ROUNDS = new LongAdder();

    static volatile long sink;

    private Stages() {}

    static long burnFirst(long x) {
        for (int i = 0; i < BATCH; i++) x = x * 6364136223846793005L + 1442695040888963407L;
        return x;
    }

    static long burnSecond(long x) {
        for (int i = 0; i < BATCH; i++) x = (x ^ (x >>> 31)) * 0x9e3779b97f4a7c15L;
        return x;
    }

    private static void runTask(long nanoseconds) {
        int task = TASKS.getAndIncrement();
        boolean first = Integer.bitCount(task) % 2 == 0; // without a period, and as often as not
        String name = "Executor task launch worker for task %d.0 in stage %d.0 (TID %d)";
        Thread.currentThread().setName(String.format(name, task % 10, first ? 1 : 2, task));
        long x = task;
        for (long end = System.nanoTime() + nanoseconds; System.nanoTime() < end; ROUNDS.increment()) {
            x = first ? burnFirst(x) : burnSecond(x);
        }
        sink = x;
    }

    private static void start(Runnable work, String name) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
    }

    private static void sleep() {
        try {
            Thread.sleep(Long.MAX_VALUE);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] arguments) throws Exception {
        long nanoseconds = Long.parseLong(arguments[2]) * 1_000_000;
        for (int i = Integer.parseInt(arguments[1]); i > 0; i--) start(Stages::sleep, "shuffle-client-" + i);
        Runnable work = () -> {
            while (true) runTask(nanoseconds);
        };
        for (int i = Integer.parseInt(arguments[0]); i > 0; i--) start(work, "Executor task launch worker");
        System.out.println("ready pid=" + ManagementFactory.getRuntimeMXBean().getName().split("@")[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        while (in.readLine() != null) System.out.println("tasks=" + TASKS.get() + " rounds=" + ROUNDS.sum());
    }
}
