package truth;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.concurrent.locks.LockSupport;

/**
 * A JVM that does what it is told and knows how much of it it has done, so that a profile of any event can be
 * held against the program's own counters.
 *
 * <pre>java truth.Truth WORK[=AMOUNT]... [-- anything else, for selectors]</pre>
 *
 * <ul>
 * <li>{@code cpu=LOAD}: {@link Cpu}, Java, native and kernel CPU time, LOAD of one core (0.5)
 * <li>{@code alloc=RATE}: {@link Alloc}, objects of several sizes, RATE MB a second (100)
 * <li>{@code lock=THREADS}: {@link Locks}, contention of a monitor and of a ReentrantLock, THREADS each (3)
 * <li>{@code waits=N}: {@link Waiting}, a thread for each kind of wait, N idle ones in a pool (3)
 * <li>{@code memory=RATE}: {@link NativeMemory}, malloc of several sizes, RATE MB a second (40)
 * <li>{@code live=RATE}: {@link Live}, objects of which a quarter stays, RATE MB a second (20)
 * <li>{@code crowd=THREADS}: {@link Crowd}, that many threads (500) that together use an eighth of a core
 * <li>{@code busy=THREADS}: {@link Busy}, that many threads (8) that never rest, for measuring a profiler's cost
 * <li>{@code patterns}: {@link Patterns}, regular expressions that are compiled and used
 * <li>{@code deep=THREADS}: {@link Deep}, that many threads (1) that allocate at the ends of stacks of which hardly two are
 *     alike
 * </ul>
 *
 * It writes {@code ready pid=N} when all is compiled and under way; a line on stdin asks for its counters,
 * the end of stdin ends it after a last line of them.
 */
public final class Truth {
    private static final long WARM_UP_NANOS = 900_000_000;

    private Truth() {}

    private static void start(String name, double amount) {
        switch (name) {
            case "cpu":
                new Cpu(amount > 0 ? amount : 0.5).start();
                break;
            case "alloc":
                new Alloc(amount > 0 ? amount : 100).start();
                break;
            case "lock":
                new Locks(amount > 0 ? (int) amount : 3).start();
                break;
            case "waits":
                new Waiting(amount > 0 ? (int) amount : 3).start();
                break;
            case "memory":
                new NativeMemory(amount > 0 ? amount : 40).start();
                break;
            case "live":
                new Live(amount > 0 ? amount : 20).start();
                break;
            case "crowd":
                new Crowd(amount > 0 ? (int) amount : 500).start();
                break;
            case "busy":
                Busy.start(amount > 0 ? (int) amount : 8);
                break;
            case "patterns":
                Patterns.start();
                break;
            case "deep":
                Deep.start(amount > 0 ? (int) amount : 1);
                break;
            default:
                throw new IllegalArgumentException("no such work: " + name);
        }
    }

    /** Start a thread that does not keep the JVM alive. */
    static Thread inBackground(String name, Runnable task) {
        Thread thread = new Thread(task, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    static void sleep(long nanos) {
        try {
            Thread.sleep(nanos / 1_000_000, (int) (nanos % 1_000_000));
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static synchronized void report() {
        System.out.println(Counters.line());
        System.out.flush();
    }

    public static void main(String[] arguments) throws IOException {
        for (String argument : arguments) {
            if (argument.equals("--")) break;
            int equals = argument.indexOf('=');
            String name = equals < 0 ? argument : argument.substring(0, equals);
            start(name, equals < 0 ? 0 : Double.parseDouble(argument.substring(equals + 1)));
        }
        Counters.add("alloc.everywhere.bytes", Counters::allocatedByAll);
        Counters.add("process.ns", Counters::cpuNanosOfAll);
        long end = System.nanoTime() + WARM_UP_NANOS;
        while (System.nanoTime() < end) LockSupport.parkNanos(end - System.nanoTime());
        System.out.println("ready pid=" + new File("/proc/self").getCanonicalFile().getName());
        System.out.flush();
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        while (requests.readLine() != null) report();
        report();
        Runtime.getRuntime().halt(0);
    }
}
