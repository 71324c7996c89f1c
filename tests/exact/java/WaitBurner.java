import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.RandomAccessFile;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Timer;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/** Threads that wait, each in one way that its name describes, for as many milliseconds as the first argument says. */
public class WaitBurner {
    interface Work {
        void run() throws Exception;
    }

    static final Object MONITOR = new Object();
    static final Object NEVER = new Object();
    static final InetAddress LOOPBACK = InetAddress.getLoopbackAddress();
    static volatile long spun;

    static void start(String name, Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
    }

    public static void main(String[] arguments) throws Exception {
        CountDownLatch held = new CountDownLatch(1);
        start("sleep in monitor", () -> sleepInMonitor(held));
        held.await();
        start("lock", WaitBurner::enter);
        start("park", WaitBurner::park);
        start("park for lock", WaitBurner::parkForLock);
        start("park for latch", () -> new CountDownLatch(1).await());
        start("sleep", WaitBurner::sleep);
        start("wait", WaitBurner::waitForNotify);
        start("wait for condition", WaitBurner::waitForCondition);
        start("wait for queue", () -> new LinkedBlockingQueue<Object>().take());
        network();
        start("disk", WaitBurner::writeAndSync);
        pools();
        start("run", WaitBurner::spin);
        Thread.sleep(Long.parseLong(arguments[0]));
        System.exit(0);
    }

    static void sleepInMonitor(CountDownLatch held) throws Exception {
        synchronized (MONITOR) {
            held.countDown();
            sleep();
        }
    }

    static void enter() {
        synchronized (MONITOR) {
            spun++;
        }
    }

    static void park() {
        while (true) {
            LockSupport.parkNanos(1_000_000_000L);
        }
    }

    static void parkForLock() throws Exception {
        ReentrantLock lock = new ReentrantLock();
        CountDownLatch locked = new CountDownLatch(1);
        start("sleep in lock", () -> {
            lock.lock();
            locked.countDown();
            sleep();
        });
        locked.await();
        lock.lock();
    }

    static void sleep() throws Exception {
        while (true) {
            Thread.sleep(1_000);
        }
    }

    static void waitForNotify() throws Exception {
        synchronized (NEVER) {
            NEVER.wait();
        }
    }

    static void waitForCondition() throws Exception {
        ReentrantLock lock = new ReentrantLock();
        Condition condition = lock.newCondition();
        lock.lock();
        condition.await();
    }

    static void network() throws Exception {
        ServerSocket server = new ServerSocket(0, 50, LOOPBACK);
        start("network read", () -> {
            Socket socket = new Socket(LOOPBACK, server.getLocalPort());
            InputStream input = socket.getInputStream();
            input.read();
        });
        start("network accept", () -> {
            while (true) {
                server.accept();
            }
        });
        start("network select", () -> Selector.open().select());
        start("network channel", WaitBurner::readChannel);
    }

    static void readChannel() throws IOException {
        ServerSocketChannel server = ServerSocketChannel.open().bind(new InetSocketAddress(LOOPBACK, 0));
        SocketChannel channel = SocketChannel.open(server.getLocalAddress());
        channel.read(ByteBuffer.allocate(1));
    }

    static void writeAndSync() throws IOException {
        File file = File.createTempFile("waits", null);
        file.deleteOnExit();
        RandomAccessFile output = new RandomAccessFile(file, "rw");
        byte[] block = new byte[1 << 20];
        while (true) {
            output.seek(0);
            output.write(block);
            output.getFD().sync();
        }
    }

    static void pools() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(2, task -> daemon(task, "idle fixed"));
        pool.submit(() -> { }).get();
        ScheduledExecutorService scheduled = Executors.newScheduledThreadPool(1, task -> daemon(task, "idle scheduled"));
        scheduled.schedule(() -> { }, 1, TimeUnit.HOURS);
        ForkJoinPool forks = new ForkJoinPool(2);
        forks.submit(() -> { }).get();
        new Timer("idle timer", true);
        Executors.newSingleThreadExecutor(task -> daemon(task, "sleep in pool")).submit(() -> {
            sleep();
            return null;
        });
    }

    static Thread daemon(Runnable task, String name) {
        Thread thread = new Thread(task, name);
        thread.setDaemon(true);
        return thread;
    }

    static void spin() {
        while (true) {
            spun++;
        }
    }
}
