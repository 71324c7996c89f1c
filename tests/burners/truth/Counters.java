package truth;

import java.lang.management.ManagementFactory;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.function.LongSupplier;

/** What the program knows of itself: named sums that only grow, in nanoseconds, bytes or times. */
final class Counters {
    private static final Map<String, LongSupplier> ALL = new ConcurrentSkipListMap<>();
    private static final com.sun.management.ThreadMXBean THREADS =
        (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();

    private static final com.sun.management.OperatingSystemMXBean PROCESS =
        (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private Counters() {}

    static void add(String name, LongSupplier value) {
        ALL.put(name, value);
    }

    /** CPU time of the calling thread so far. */
    static long cpuNanos() {
        return THREADS.getCurrentThreadCpuTime();
    }

    /** CPU time of all threads so far, those that have ended and those of the JVM itself included. */
    static long cpuNanosOfAll() {
        return PROCESS.getProcessCpuTime();
    }

    /** Bytes that a thread has allocated, as the JVM counts them. */
    static long allocatedBytes(Thread thread) {
        return THREADS.getThreadAllocatedBytes(thread.getId());
    }

    /** Bytes that all living threads have allocated, as the JVM counts them. */
    static long allocatedByAll() {
        long sum = 0;
        for (long bytes : THREADS.getThreadAllocatedBytes(THREADS.getAllThreadIds())) sum += Math.max(0, bytes);
        return sum;
    }

    /** Nanoseconds that a thread was blocked by monitors, as the JVM counts them (in milliseconds). */
    static long blockedNanos(Thread thread) {
        return 1_000_000 * THREADS.getThreadInfo(thread.getId()).getBlockedTime();
    }

    static void watchContention() {
        THREADS.setThreadContentionMonitoringEnabled(true);
    }

    static String line() {
        StringBuilder line = new StringBuilder("counters");
        ALL.forEach((name, value) -> line.append(' ').append(name).append('=').append(value.getAsLong()));
        return line.toString();
    }

    /** A sum that one thread adds to and others read. */
    static final class Sum {
        private volatile long value;

        Sum(String name) {
            add(name, () -> value);
        }

        void plus(long amount) {
            value += amount;
        }

        long value() {
            return value;
        }
    }

    /** The time that threads spent waiting, waits that still go on included. Several threads may share one. */
    static final class Waits {
        private long completed;
        private long begins;
        private int open;
        private long times;

        Waits(String name) {
            add(name + ".ns", this::nanos);
            add(name + ".times", this::times);
        }

        synchronized void begin() {
            begins += System.nanoTime();
            open++;
        }

        synchronized void end(long began) {
            completed += System.nanoTime() - began;
            begins -= began;
            open--;
            times++;
        }

        /** As `begin`, for a wait that will be ended. */
        synchronized long began() {
            long now = System.nanoTime();
            begins += now;
            open++;
            return now;
        }

        private synchronized long nanos() {
            return completed + open * System.nanoTime() - begins;
        }

        private synchronized long times() {
            return times;
        }
    }
}
