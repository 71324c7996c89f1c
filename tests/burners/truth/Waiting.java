package truth;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.RandomAccessFile;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.channels.Selector;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A thread for each kind of wait, each in a method of its own and doing nothing else; what it waits for comes
 * every 100 ms or never. Threads are called truth-KIND-N, the idle ones of a pool truth-pool-N.
 */
final class Waiting {
    private static final long TURN_NANOS = 100_000_000;

    private final Object monitor = new Object();
    private final Object held = new Object();
    private final ReentrantLock lock = new ReentrantLock();
    private final ReentrantLock heldLock = new ReentrantLock();
    private final Condition condition = lock.newCondition();
    private final int idle;
    /** Held, or it would be collected and closed. */
    private Socket otherEnd;

    Waiting(int idle) {
        this.idle = idle;
    }

    void start() {
        try {
            again("sleep", this::sleeping);
            again("park", this::parking);
            again("wait", this::waiting);
            again("condition", this::awaiting);
            contention();
            network();
            disk();
            pool();
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    /** A thread that waits again and again, each time until the task returns. */
    private static void again(String kind, Callable<?> task) {
        Counters.Waits waits = new Counters.Waits("waits." + kind);
        Truth.inBackground("truth-" + kind + "-1", () -> {
            try {
                while (true) {
                    long began = waits.began();
                    task.call();
                    waits.end(began);
                }
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        });
    }

    Object sleeping() throws InterruptedException {
        Thread.sleep(TURN_NANOS / 1_000_000);
        return null;
    }

    Object parking() {
        LockSupport.parkNanos(TURN_NANOS);
        return null;
    }

    Object waiting() throws InterruptedException {
        synchronized (monitor) {
            monitor.wait(TURN_NANOS / 1_000_000);
        }
        return null;
    }

    Object awaiting() throws InterruptedException {
        lock.lock();
        try {
            return condition.await(TURN_NANOS, TimeUnit.NANOSECONDS);
        } finally {
            lock.unlock();
        }
    }

    private void contention() {
        AtomicInteger taken = new AtomicInteger();
        Truth.inBackground("truth-holder-1", () -> {
            synchronized (held) {
                heldLock.lock();
                taken.incrementAndGet();
                while (true) holding();
            }
        });
        while (taken.get() == 0) Truth.sleep(1_000_000);
        again("monitor", this::blocked);
        again("lock", this::locked);
    }

    void holding() {
        Truth.sleep(10 * TURN_NANOS);
    }

    Object blocked() {
        synchronized (held) {
            return null;
        }
    }

    Object locked() {
        heldLock.lock();
        return null;
    }

    private void network() throws IOException {
        ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        InputStream silent = new Socket(server.getInetAddress(), server.getLocalPort()).getInputStream();
        otherEnd = server.accept();
        Selector selector = Selector.open();
        again("read", () -> reading(silent));
        again("accept", () -> accepting(server));
        again("select", () -> selecting(selector));
    }

    int reading(InputStream silent) throws IOException {
        return silent.read();
    }

    Socket accepting(ServerSocket server) throws IOException {
        return server.accept();
    }

    int selecting(Selector selector) throws IOException {
        return selector.select(TURN_NANOS / 1_000_000);
    }

    /** Waits for a disk only where the file's folder lies on one that is slow. */
    private static void disk() throws IOException {
        Counters.Waits waits = new Counters.Waits("waits.disk");
        File file = File.createTempFile("truth-", null, new File("/var/tmp"));
        RandomAccessFile open = new RandomAccessFile(file, "rw");
        if (!file.delete()) throw new IOException("cannot delete " + file);
        Truth.inBackground("truth-disk-1", () -> {
            try {
                while (true) {
                    open.seek(0);
                    open.write(new byte[64 * 1024]);
                    long began = waits.began();
                    syncing(open);
                    waits.end(began);
                    Truth.sleep(TURN_NANOS / 20);
                }
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
        });
    }

    static void syncing(RandomAccessFile open) throws IOException {
        open.getFD().sync();
    }

    private void pool() {
        Counters.Waits waits = new Counters.Waits("waits.pool");
        AtomicInteger number = new AtomicInteger();
        ThreadFactory threads = task -> {
            Thread thread = new Thread(task, "truth-pool-" + number.incrementAndGet());
            thread.setDaemon(true);
            return thread;
        };
        ThreadPoolExecutor executor =
            new ThreadPoolExecutor(idle, idle, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), threads);
        executor.prestartAllCoreThreads();
        for (int i = 0; i < idle; i++) waits.begin();
    }
}
