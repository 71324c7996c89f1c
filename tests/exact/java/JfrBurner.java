import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Does everything that a recording has events for, for a given number of milliseconds: burns CPU time below stacks of
 * many shapes, allocates inside and outside of TLABs, keeps some of it, contends for monitors and locks, sleeps and
 * parks, and takes native memory. Names of threads, classes and methods are not all ASCII.
 */
public final class JfrBurner {
    static final Object MONITOR = new Object();
    static final ReentrantLock LOCK = new ReentrantLock();
    static final List<Object> KEPT = new ArrayList<>();
    static volatile double sink;
    static volatile Object garbage;

    interface Step {
        void take(int depth, int path);
    }

    static final class Naïve implements Step {
        @Override
        public void take(int depth, int path) {
            step(depth, path);
        }
    }

    static void spin() {
        double x = 1;
        for (int i = 0; i < 20_000; i++) x = Math.sqrt(x + i);
        sink = x;
    }

    static void even(int depth, int path) {
        step(depth, path);
    }

    static void нечёт(int depth, int path) {
        step(depth, path);
    }

    static void step(int depth, int path) {
        if (depth == 0) {
            spin();
        } else if ((path & 3) == 0) {
            even(depth - 1, path >> 2);
        } else if ((path & 3) == 1) {
            нечёт(depth - 1, path >> 2);
        } else if ((path & 3) == 2) {
            new Naïve().take(depth - 1, path >> 2);
        } else {
            Step lambda = (d, p) -> step(d, p);
            lambda.take(depth - 1, path >> 2);
        }
    }

    static void burn(int seed) {
        int random = seed * 0x9E3779B9 + 1;
        while (true) {
            random = random * 1664525 + 1013904223;
            step(4 + (random >>> 28), random >>> 4);
        }
    }

    static void allocate() {
        int round = 0;
        while (true) {
            garbage = new byte[1000 + (round & 1023)];
            garbage = new int[3][100];
            garbage = new String[] {"a" + round};
            if ((round & 255) == 0) garbage = new long[400_000];
            if ((round & 1023) == 0) keep(new byte[100_000]);
            round++;
            if ((round & 4095) == 0) pause(1);
        }
    }

    static synchronized void keep(Object object) {
        if (KEPT.size() < 500) KEPT.add(object);
    }

    static void fight() {
        while (true) {
            synchronized (MONITOR) {
                spin();
                pause(2);
            }
            LOCK.lock();
            try {
                spin();
                pause(2);
            } finally {
                LOCK.unlock();
            }
        }
    }

    static void nativeMemory() {
        while (true) {
            ByteBuffer buffer = ByteBuffer.allocateDirect(300_000);
            buffer.put(0, (byte) 1);
            garbage = buffer;
            pause(5);
        }
    }

    static void pause(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void start(String name, Runnable task) {
        Thread thread = new Thread(task, name);
        thread.setDaemon(true);
        thread.start();
    }

    public static void main(String[] arguments) {
        for (int i = 0; i < 2; i++) {
            int seed = i;
            start("burner-" + i, () -> burn(seed));
            start("fighter " + i, JfrBurner::fight);
        }
        start("выделитель", JfrBurner::allocate);
        start("café", JfrBurner::nativeMemory);
        pause(Long.parseLong(arguments[0]));
    }
}
