import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkStatusTracker;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.storage.StorageLevel;
import scala.Tuple2;

/**
 * Applications whose event logs each show one thing: {@code CoreJobs MASTER LOGS NAME[,SETTING=VALUE]...}. They run
 * one after the other and write their logs into the folder LOGS.
 */
public final class CoreJobs {
    private static final CountDownLatch STARTED = new CountDownLatch(1);

    private CoreJobs() {}

    public static void main(String[] arguments) throws Exception {
        for (String application : Arrays.asList(arguments).subList(2, arguments.length)) {
            String name = application.split(",", 2)[0];
            SparkConf settings = settings(arguments[0], arguments[1], application);
            try (JavaSparkContext spark = new JavaSparkContext(settings)) {
                System.out.println(name + " " + spark.sc().applicationId());
                run(name.split("-")[0], spark);
            }
        }
    }

    static SparkConf settings(String master, String logs, String application) {
        SparkConf settings = new SparkConf().setMaster(master).set("spark.ui.enabled", "false")
            .set("spark.eventLog.enabled", "true").set("spark.eventLog.dir", "file://" + logs)
            .set("spark.eventLog.compress", "false").set("spark.eventLog.rolling.enabled", "false");
        String[] parts = application.split(",");
        settings.setAppName(parts[0]);
        for (String part : Arrays.asList(parts).subList(1, parts.length)) {
            String[] pair = part.split("=", 2);
            settings.set(pair[0], pair[1]);
        }
        return settings;
    }

    private static void run(String job, JavaSparkContext spark) throws Exception {
        switch (job) {
            case "small" -> small(spark);
            case "many" -> many(spark);
            case "spill" -> spill(spark);
            case "failing" -> failing(spark);
            case "killed" -> killed(spark);
            case "skewed" -> skewed(spark);
            case "speculative" -> speculative(spark);
            case "lost" -> lost(spark);
            default -> throw new IllegalArgumentException(job);
        }
    }

    /** Shuffles, stages that are skipped, cached data, a job group. */
    private static void small(JavaSparkContext spark) {
        spark.setJobGroup("words", "count the words", false);
        JavaPairRDD<Integer, Long> counts = spark.parallelize(range(2000), 4)
            .mapToPair(n -> new Tuple2<>(n % 7, 1L)).reduceByKey(Long::sum, 3);
        counts.count();
        counts.collect();
        spark.clearJobGroup();
        JavaRDD<Integer> cached = spark.parallelize(range(50_000), 3).map(n -> n * 2);
        cached.persist(StorageLevel.MEMORY_ONLY());
        cached.count();
        cached.mapToPair(n -> new Tuple2<>(n % 7, 1L)).join(counts, 2).count();
    }

    /** A log that is long enough to be rolled. */
    private static void many(JavaSparkContext spark) {
        for (int round = 0; round < 3; round++) spark.parallelize(range(1500), 1500).map(n -> n + 1).count();
    }

    private static void spill(JavaSparkContext spark) {
        spark.parallelize(range(200_000), 4).mapToPair(n -> new Tuple2<>((n * 7919) % 200_003, "value " + n))
            .sortByKey(true, 3).count();
    }

    /** A task that succeeds when it is tried again, and a job that fails. */
    private static void failing(JavaSparkContext spark) {
        spark.parallelize(range(4), 4).map(n -> {
            if (n == 2 && TaskContext.get().attemptNumber() == 0) throw new IllegalStateException("tried once");
            return n;
        }).count();
        try {
            spark.parallelize(range(4), 4).mapToPair(n -> new Tuple2<>(n, n)).groupByKey(2).map(pair -> {
                if (pair._1() == 1) throw new IllegalStateException("never works");
                return pair;
            }).count();
        } catch (Exception expected) {
            System.out.println("failed as expected");
        }
        spark.parallelize(range(2), 2).count();
    }

    /** A job that is cancelled while its tasks run. */
    private static void killed(JavaSparkContext spark) throws Exception {
        Thread job = new Thread(() -> {
            spark.setJobGroup("cancelled", "to be cancelled", true);
            try {
                spark.parallelize(range(4), 4).map(n -> {
                    STARTED.countDown();
                    Thread.sleep(60_000);
                    return n;
                }).count();
            } catch (Exception expected) {
                System.out.println("cancelled as expected");
            }
        });
        job.start();
        STARTED.await();
        spark.cancelJobGroup("cancelled");
        job.join();
        spark.parallelize(range(2), 2).count();
    }

    /** Most records have the same key; blocks are fetched from another executor. */
    private static void skewed(JavaSparkContext spark) {
        spark.parallelize(range(40_000), 6).mapToPair(n -> new Tuple2<>(n % 10 < 8 ? 0 : n % 100, "value " + n))
            .groupByKey(6).mapValues(values -> {
                long sum = 0;
                for (String value : values) for (int i = 0; i < 200; i++) sum += value.hashCode() ^ i;
                return sum;
            }).count();
    }

    /** A task that waits is started a second time, and then killed. */
    private static void speculative(JavaSparkContext spark) throws Exception {
        spark.parallelize(range(8), 8).map(n -> {
            boolean first = TaskContext.get().attemptNumber() == 0;
            Thread.sleep(n == 3 && first ? 60_000 : 300);
            return n;
        }).count();
        SparkStatusTracker status = spark.sc().statusTracker();
        while (Arrays.stream(status.getExecutorInfos()).anyMatch(one -> one.numRunningTasks() > 0)) Thread.sleep(20);
    }

    /** An executor ends after it wrote shuffle output: its tasks fail, and a stage gets a second attempt. */
    private static void lost(JavaSparkContext spark) throws Exception {
        String mark = Files.createTempDirectory("lost").resolve("mark").toString();
        spark.parallelize(range(400), 8).mapToPair(n -> {
            Thread.sleep(1);
            return new Tuple2<>(n % 11, 1L);
        }).reduceByKey(Long::sum, 4).map(pair -> {
            Thread.sleep(50);
            if (TaskContext.getPartitionId() == 1 && Path.of(mark).toFile().createNewFile()) Runtime.getRuntime().halt(3);
            return pair;
        }).count();
    }

    private static List<Integer> range(int size) {
        List<Integer> numbers = new ArrayList<>();
        for (int i = 0; i < size; i++) numbers.add(i);
        return numbers;
    }
}
