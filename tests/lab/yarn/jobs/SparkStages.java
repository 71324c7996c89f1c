import java.io.File;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * A Spark job of stages with methods of their own: {@code SparkStages turns|together|waves SECONDS TASKS MILLIS}.
 * Stages of {@code TASKS} tasks run one after the other, or always two at the same time, each in one of two methods, for
 * so long or until the file /shared/APPLICATION.end is there. A task is busy for {@code MILLIS}. In waves, every other
 * stage is a single task that takes {@code LONG} times as long.
 */
public final class SparkStages {
    private static final int LONG = 60;

    private SparkStages() {}

    static long firstWork(int rounds) {
        long x = 1;
        for (int i = 0; i < rounds; i++) x = x * 31 + (i ^ (x >>> 7));
        return x;
    }

    static long secondWork(int rounds) {
        long x = 1;
        for (int i = 0; i < rounds; i++) x = (x << 1) ^ (x >>> 3) ^ i;
        return x;
    }

    static long first(int millis) {
        long until = System.nanoTime() + millis * 1_000_000L;
        long sink = 0;
        while (System.nanoTime() < until) sink += firstWork(50_000);
        return sink;
    }

    static long second(int millis) {
        long until = System.nanoTime() + millis * 1_000_000L;
        long sink = 0;
        while (System.nanoTime() < until) sink += secondWork(50_000);
        return sink;
    }

    public static void main(String[] arguments) throws InterruptedException {
        boolean together = arguments[0].equals("together");
        long end = System.nanoTime() + Integer.parseInt(arguments[1]) * 1_000_000_000L;
        int tasks = Integer.parseInt(arguments[2]);
        int millis = Integer.parseInt(arguments[3]);
        List<Integer> numbers = new ArrayList<>();
        for (int i = 0; i < tasks; i++) numbers.add(i);
        SparkConf settings = new SparkConf().setAppName("stages-" + arguments[0]).set("spark.scheduler.mode", "FAIR");
        try (JavaSparkContext spark = new JavaSparkContext(settings)) {
            File told = new File("/shared", spark.sc().applicationId() + ".end");
            Runnable firstStage = () -> spark.parallelize(numbers, tasks).map(number -> first(millis)).collect();
            List<Integer> others = arguments[0].equals("waves") ? numbers.subList(0, 1) : numbers;
            int busy = arguments[0].equals("waves") ? LONG * millis : millis;
            Runnable secondStage = () -> spark.parallelize(others, others.size()).map(number -> second(busy)).count();
            Runnable both = () -> {
                firstStage.run();
                secondStage.run();
            };
            Thread other = new Thread(() -> repeat(secondStage, end, told));
            if (together) other.start();
            repeat(together ? firstStage : both, end, told);
            other.join();
        }
    }

    private static void repeat(Runnable work, long end, File told) {
        while (System.nanoTime() < end && !told.exists()) work.run();
    }
}
