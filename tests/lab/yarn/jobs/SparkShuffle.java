import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.apache.spark.HashPartitioner;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;

/** Shuffles MEGABYTES that cannot be compressed: `SparkShuffle MEGABYTES MAPS REDUCES`. */
public final class SparkShuffle {
    private static final int SIZE = 100_000;

    public static void main(String[] arguments) throws Exception {
        int megabytes = Integer.parseInt(arguments[0]);
        int maps = Integer.parseInt(arguments[1]);
        int reduces = Integer.parseInt(arguments[2]);
        int each = megabytes * 10 / maps;
        try (JavaSparkContext spark = new JavaSparkContext(new SparkConf())) {
            // Classes are loaded and executors are there before it counts.
            shuffled(spark, maps, 1, reduces).count();
            shuffled(spark, maps, each, reduces).values().map(SparkShuffle::work).reduce(Long::sum);
        }
    }

    private static JavaPairRDD<Integer, byte[]> shuffled(JavaSparkContext spark, int maps, int each, int reduces) {
        List<Integer> numbers = new ArrayList<>(Collections.nCopies(maps, each));
        return spark.parallelize(numbers, maps).flatMapToPair(count -> {
            Random random = new Random(count);
            List<Tuple2<Integer, byte[]>> records = new ArrayList<>();
            for (int number = 0; number < count; number++) {
                byte[] content = new byte[SIZE];
                random.nextBytes(content);
                records.add(new Tuple2<>(number, content));
            }
            return records.iterator();
        }).partitionBy(new HashPartitioner(reduces));
    }

    /** A few milliseconds of CPU time for each record. */
    private static long work(byte[] content) {
        long sum = 0;
        for (int round = 0; round < 20; round++) {
            for (byte one : content) {
                sum = sum * 31 + one;
            }
        }
        return sum;
    }
}
