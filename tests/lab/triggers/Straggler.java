import java.util.Collections;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;

/** Stage 0 rests for 2 s in each of 12 tasks; the one with index 7 takes a core until the program is killed. */
public final class Straggler {
    private static final int TASKS = 12, SLOW = 7;

    private static void rest() throws InterruptedException {
        Thread.sleep(2000);
    }

    private static long straggle() {
        long number = 1;
        while (true) {
            for (int i = 0; i < 1_000_000; i++) number = number * 31 + 7;
            if (Thread.interrupted()) return number;
        }
    }

    public static void main(String[] arguments) {
        SparkConf conf = new SparkConf().setMaster("local[2]").setAppName("straggler").set("spark.ui.port", arguments[0]);
        try (JavaSparkContext context = new JavaSparkContext(conf)) {
            System.out.println("ready");
            context.parallelize(Collections.nCopies(TASKS, 1), TASKS).mapPartitionsWithIndex((index, rows) -> {
                if (index == SLOW) straggle();
                else rest();
                return rows;
            }, false).count();
        }
    }
}
