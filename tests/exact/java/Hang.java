import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;

/** Hangs in a way that is known. Says "ready" once it does, and ends with its input. */
public class Hang {
    static final Object FIRST = new Object();
    static final Object SECOND = new Object();
    static final ReentrantLock LOCK = new ReentrantLock();
    static final ReentrantLock OTHER = new ReentrantLock();

    interface Body {
        void run() throws Exception;
    }

    static Thread go(String name, Body body) {
        Thread thread = new Thread(() -> {
            try {
                body.run();
            } catch (Exception error) {
                throw new RuntimeException(error);
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    static void until(Thread thread, Thread.State state) throws Exception {
        while (thread.getState() != state) {
            Thread.sleep(1);
        }
    }

    static void both(Object one, Object other, CountDownLatch held) throws Exception {
        synchronized (one) {
            held.countDown();
            held.await();
            synchronized (other) {
                throw new IllegalStateException();
            }
        }
    }

    static void bothLocks(ReentrantLock one, ReentrantLock other, CountDownLatch held) throws Exception {
        one.lock();
        held.countDown();
        held.await();
        other.lock();
    }

    static void deadlock() throws Exception {
        CountDownLatch held = new CountDownLatch(2);
        Thread left = go("left hand", () -> both(FIRST, SECOND, held));
        Thread right = go("right \"hand\"", () -> both(SECOND, FIRST, held));
        CountDownLatch locked = new CountDownLatch(2);
        Thread up = go("lock-1", () -> bothLocks(LOCK, OTHER, locked));
        Thread down = go("lock-2", () -> bothLocks(OTHER, LOCK, locked));
        until(left, Thread.State.BLOCKED);
        until(right, Thread.State.BLOCKED);
        until(up, Thread.State.WAITING);
        until(down, Thread.State.WAITING);
    }

    static void keep(CountDownLatch held) throws Exception {
        synchronized (FIRST) {
            held.countDown();
            Thread.sleep(1_000_000);
        }
    }

    static void enter() {
        synchronized (FIRST) {
            throw new IllegalStateException();
        }
    }

    static void holder(int waiters) throws Exception {
        CountDownLatch held = new CountDownLatch(1);
        go("keeper", () -> keep(held));
        held.await();
        for (int i = 0; i < waiters; i++) {
            until(go("Executor task launch worker for task " + i + ".0 in stage 14.0 (TID " + i + ")", Hang::enter),
                Thread.State.BLOCKED);
        }
    }

    static volatile double value = 1;

    static void spin() {
        while (true) {
            value = Math.sin(value) + 1;
        }
    }

    static void stuck() throws Exception {
        new CountDownLatch(1).await();
    }

    static void idle(int threads) throws Exception {
        ThreadPoolExecutor pool = new ThreadPoolExecutor(threads, threads, 1, TimeUnit.DAYS, new LinkedBlockingQueue<>());
        ThreadFactory factory = pool.getThreadFactory();
        List<Thread> made = new ArrayList<>();
        pool.setThreadFactory(task -> {
            Thread thread = factory.newThread(task);
            thread.setDaemon(true);
            made.add(thread);
            return thread;
        });
        pool.prestartAllCoreThreads();
        for (Thread thread : made) {
            until(thread, Thread.State.WAITING);
        }
    }

    static void virtual() throws Exception {
        ThreadFactory factory = (ThreadFactory) Class.forName("java.lang.Thread$Builder")
            .getMethod("factory").invoke(Thread.class.getMethod("ofVirtual").invoke(null));
        for (int i = 0; i < 50; i++) {
            Thread thread = factory.newThread(() -> {
                try {
                    stuck();
                } catch (Exception error) {
                    throw new RuntimeException(error);
                }
            });
            thread.setName("virtual-" + i);
            thread.start();
            until(thread, Thread.State.WAITING);
        }
    }

    public static void main(String[] arguments) throws Exception {
        for (String what : arguments) {
            switch (what) {
                case "deadlock": deadlock(); break;
                case "holder": holder(20); break;
                case "busy": go("spinner", Hang::spin); break;
                case "stuck": until(go("worker", Hang::stuck), Thread.State.WAITING); break;
                case "idle": idle(3); break;
                case "thousand": idle(1000); break;
                case "virtual": virtual(); break;
                default: throw new IllegalArgumentException(what);
            }
        }
        System.out.println("ready");
        System.in.read();
    }
}
