package truth;

import java.io.FileInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.util.SplittableRandom;
import java.util.zip.Deflater;

/**
 * One thread, truth-cpu-1, whose CPU time goes by the thread's own clock 50 % into compiled Java
 * ({@code inJava}), 30 % into zlib ({@code inNative}) and 20 % into the kernel ({@code inKernel}).
 */
final class Cpu implements Runnable {
    private static final int LEAST_SLICE_NANOS = 400_000;
    private static final int SLICE_RANGE_NANOS = 1_400_000;
    private static final int ROUND = 100_000;

    static volatile long sink;

    /** Slices of unlike length: a steady rhythm would beat with the sampling frequency. */
    private final SplittableRandom lengths = new SplittableRandom();
    private final Share[] shares = {new InJava(), new InNative(), new InKernel()};
    private final double load;

    Cpu(double load) {
        this.load = load;
    }

    void start() {
        Truth.inBackground("truth-cpu-1", this);
    }

    @Override
    public void run() {
        Pace pace = new Pace();
        while (true) pace.took((long) (Share.one(shares) / load));
    }

    private abstract class Timed extends Share {
        Timed(String counter, int percent) {
            super(counter, percent);
        }

        @Override
        final void slice() {
            long before = Counters.cpuNanos();
            burn(before + LEAST_SLICE_NANOS + lengths.nextInt(SLICE_RANGE_NANOS));
            used.plus(Counters.cpuNanos() - before);
        }

        abstract void burn(long until);
    }

    private final class InJava extends Timed {
        InJava() {
            super("cpu.java.ns", 50);
        }

        @Override
        void burn(long until) {
            inJava(until);
        }
    }

    private final class InNative extends Timed {
        private final Deflater deflater = new Deflater(4);
        private final byte[] text = new byte[8000];
        private final byte[] packed = new byte[10_000];

        InNative() {
            super("cpu.native.ns", 30);
            for (int i = 0; i < text.length; i++) text[i] = (byte) (lengths.nextInt() & lengths.nextInt() & 31);
        }

        @Override
        void burn(long until) {
            inNative(deflater, text, packed, until);
        }
    }

    private final class InKernel extends Timed {
        private final ByteBuffer bytes = ByteBuffer.allocateDirect(64 * 1024);
        private final FileChannel random;

        InKernel() {
            super("cpu.kernel.ns", 20);
            try {
                random = new FileInputStream("/dev/urandom").getChannel();
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
        }

        @Override
        void burn(long until) {
            inKernel(random, bytes, until);
        }
    }

    static void inJava(long until) {
        do {
            long x = until;
            for (int i = 0; i < ROUND; i++) x = x * 6364136223846793005L + 1442695040888963407L;
            sink = x;
        } while (Counters.cpuNanos() < until);
    }

    static void inNative(Deflater deflater, byte[] text, byte[] packed, long until) {
        do {
            deflater.reset();
            deflater.setInput(text);
            deflater.finish();
            sink = deflater.deflate(packed);
        } while (Counters.cpuNanos() < until);
    }

    static void inKernel(FileChannel random, ByteBuffer bytes, long until) {
        try {
            do {
                bytes.clear();
                sink = random.read(bytes);
            } while (Counters.cpuNanos() < until);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }
}
