import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Three threads take turns with a monitor, three with a lock, holding each for as many microseconds as the second
 * argument says, for as many milliseconds as the first does. Prints the nanoseconds of waiting for each.
 */
public class LockBurner {
    static final Object MONITOR = new Object();
    static final ReentrantLock LOCK = new ReentrantLock();
    static final AtomicLong FOR_MONITOR = new AtomicLong();
    static final AtomicLong FOR_LOCK = new AtomicLong();

    public static void main(String[] arguments) throws Exception {
        long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000;
        long hold = Long.parseLong(arguments[1]) * 1_000;
        CountDownLatch done = new CountDownLatch(6);
        for (int i = 0; i < 3; i++) {
            start(done, end, () -> enterMonitor(hold));
            start(done, end, () -> takeLock(hold));
        }
        done.await();
        System.out.println(FOR_MONITOR + " " + FOR_LOCK);
    }

    static void start(CountDownLatch done, long end, Runnable turn) {
        new Thread(() -> {
            while (System.nanoTime() < end) {
                turn.run();
            }
            done.countDown();
        }).start();
    }

    static void enterMonitor(long hold) {
        long before = System.nanoTime();
        synchronized (MONITOR) {
            FOR_MONITOR.addAndGet(System.nanoTime() - before);
            hold(hold);
        }
        hold(hold);
    }

    static void takeLock(long hold) {
        long before = System.nanoTime();
        LOCK.lock();
        try {
            FOR_LOCK.addAndGet(System.nanoTime() - before);
            hold(hold);
        } finally {
            LOCK.unlock();
        }
        hold(hold);
    }

    /** Sleeps, so that the others wait for the lock, not for a processor. */
    static void hold(long nanoseconds) {
        java.util.concurrent.locks.LockSupport.parkNanos(nanoseconds);
    }
}
