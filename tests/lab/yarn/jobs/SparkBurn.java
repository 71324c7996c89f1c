import java.io.File;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * A Spark job whose profile is known: {@code SparkBurn cpu|alloc|idle SECONDS TASKS}; it ends early if the file
 * /shared/APPLICATION.end exists. For that time each task is busy in {@code hotCpu} (three quarters) and {@code
 * coolCpu} (a quarter), allocates in {@code hotAlloc}, or sleeps.
 */
public final class SparkBurn {
    private static final int SLICE_MILLIS = 5;

    private SparkBurn() {}

    static long hotCpu(int rounds) {
        long x = 1;
        for (int i = 0; i < rounds; i++) x = x * 31 + (i ^ (x >>> 7));
        return x;
    }

    static long coolCpu(int rounds) {
        long x = 1;
        for (int i = 0; i < rounds; i++) x = (x << 1) ^ (x >>> 3) ^ i;
        return x;
    }

    static long hotAlloc(int rounds) {
        long bytes = 0;
        List<byte[]> kept = new ArrayList<>();
        for (int i = 0; i < rounds; i++) {
            byte[] block = new byte[1024];
            block[0] = (byte) i;
            kept.add(block);
            if (kept.size() > 500) kept.clear();
            bytes += block.length;
        }
        return bytes;
    }

    static long burn(String mode, int seconds) {
        long end = System.nanoTime() + seconds * 1_000_000_000L;
        long sink = 0;
        File told = new File("/shared", SparkEnv.get().conf().getAppId() + ".end");
        for (int slice = 0; System.nanoTime() < end && (slice % 20 != 0 || !told.exists()); slice++) {
            long until = System.nanoTime() + SLICE_MILLIS * 1_000_000L;
            while (System.nanoTime() < until) {
                if (mode.equals("idle")) LockSupport.parkNanos(SLICE_MILLIS * 1_000_000L);
                else if (mode.equals("alloc")) sink += hotAlloc(2_000);
                else sink += slice % 4 == 3 ? coolCpu(50_000) : hotCpu(50_000);
            }
        }
        return sink;
    }

    public static void main(String[] arguments) {
        String mode = arguments[0];
        int seconds = Integer.parseInt(arguments[1]);
        int tasks = Integer.parseInt(arguments[2]);
        try (JavaSparkContext spark = new JavaSparkContext(new SparkConf().setAppName("burn-" + mode))) {
            List<Integer> numbers = new ArrayList<>();
            for (int i = 0; i < tasks; i++) numbers.add(i);
            long result = spark.parallelize(numbers, tasks).map(number -> burn(mode, seconds)).reduce((a, b) -> a ^ b);
            System.out.println("result " + result);
        }
    }
}
