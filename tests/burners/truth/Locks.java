package truth;

import java.util.concurrent.locks.ReentrantLock;

/**
 * Threads truth-monitor-N that contend for a monitor ({@code enterMonitor}), and truth-lock-N for a ReentrantLock
 * ({@code enterLock}). Each holds it asleep and rests asleep, so that all waiting is for the holder.
 */
final class Locks {
    private static final long HOLD_NANOS = 4_000_000;
    private static final long REST_NANOS = 3_000_000;

    private final Object monitor = new Object();
    private final ReentrantLock lock = new ReentrantLock();
    private final Counters.Waits monitorWaits = new Counters.Waits("lock.monitor");
    private final Counters.Waits lockWaits = new Counters.Waits("lock.lock");
    private final int threads;

    Locks(int threads) {
        this.threads = threads;
    }

    void start() {
        Counters.watchContention();
        Thread[] blocked = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            blocked[i] = Truth.inBackground("truth-monitor-" + i, () -> {
                while (true) enterMonitor();
            });
            Truth.inBackground("truth-lock-" + i, () -> {
                while (true) enterLock();
            });
        }
        Counters.add("lock.blocked.ns", () -> {
            long sum = 0;
            for (Thread thread : blocked) sum += Counters.blockedNanos(thread);
            return sum;
        });
    }

    void enterMonitor() {
        long began = monitorWaits.began();
        synchronized (monitor) {
            monitorWaits.end(began);
            Truth.sleep(HOLD_NANOS);
        }
        Truth.sleep(REST_NANOS);
    }

    void enterLock() {
        long began = lockWaits.began();
        lock.lock();
        try {
            lockWaits.end(began);
            Truth.sleep(HOLD_NANOS);
        } finally {
            lock.unlock();
        }
        Truth.sleep(REST_NANOS);
    }
}
