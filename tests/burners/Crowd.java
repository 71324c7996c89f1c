import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A burner ({@code java -Dcrowd=1000 -Dmegabytes=1000 Crowd …}, as Burner) with so many threads that wait, of
 * which the first owns a lock of java.util.concurrent, and so much memory in small objects.
 */
public final class Crowd {
    private static final int OBJECT = 24;
    private static final CountDownLatch NEVER = new CountDownLatch(1);
    private static final ReentrantLock LOCK = new ReentrantLock();

    /** An object of 24 bytes, or less where references are small. */
    static final class Link {
        final Link next;
        final long value;

        Link(Link next, long value) {
            this.next = next;
            this.value = value;
        }
    }

    static Link[] memory;

    private Crowd() {}

    static void waitForEver(boolean owns) {
        if (owns) LOCK.lock();
        try {
            NEVER.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.getInteger("crowd", 1);
        long objects = Long.getLong("megabytes", 0L) * 1_000_000 / OBJECT;
        memory = new Link[1000];
        for (long i = 0; i < objects; i++) {
            int chain = (int) (i % memory.length);
            memory[chain] = new Link(memory[chain], i);
        }
        CountDownLatch started = new CountDownLatch(threads);
        for (int i = 0; i < threads; i++) {
            boolean owns = i == 0;
            Thread thread =
                    new Thread(
                            null,
                            () -> {
                                started.countDown();
                                waitForEver(owns);
                            },
                            "crowd-" + i,
                            256 << 10);
            thread.setDaemon(true);
            thread.start();
        }
        started.await();
        Burner.main(arguments);
    }
}
