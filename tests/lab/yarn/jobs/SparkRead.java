import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;

/** Counts the lines of a text FILE when it is told to, and ends when it is told to: `SparkRead FILE`. */
public final class SparkRead {
    public static void main(String[] arguments) throws Exception {
        try (JavaSparkContext spark = new JavaSparkContext(new SparkConf())) {
            // Classes are loaded and executors are there before it counts.
            spark.textFile(SparkRead.class.getProtectionDomain().getCodeSource().getLocation().toString()).count();
            say("ready");
            System.in.read();
            spark.textFile(arguments[0]).count();
            say("done");
            System.in.read();
        }
    }

    private static void say(String what) {
        System.out.println(what);
        System.out.flush();
    }
}
