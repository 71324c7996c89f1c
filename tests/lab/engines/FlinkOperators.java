import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.DiscardingSink;

/**
 * A Flink cluster within this JVM that runs two operators, each with a thread and a method of its own. Prints "busy"
 * once both run.
 */
public class FlinkOperators {
    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment job = StreamExecutionEnvironment.createLocalEnvironment(1);
        job.disableOperatorChaining(); // else one thread runs both
        job.fromSequence(0, Long.MAX_VALUE).name("numbers")
            .map(new First()).name("parse lines")
            .map(new Second()).name("count words")
            .addSink(new DiscardingSink<>()).name("nowhere");
        job.execute("operators");
    }

    static long burn(long seed) {
        for (int i = 0; i < 300_000; i++) seed = seed * 6364136223846793005L + 1442695040888963407L;
        return seed;
    }

    public static class First implements MapFunction<Long, Long> {
        public Long map(Long number) {
            return parse(number);
        }

        static long parse(long number) {
            return burn(number);
        }
    }

    public static class Second implements MapFunction<Long, Long> {
        private boolean told;

        public Long map(Long number) {
            if (!told) System.out.println("busy");
            told = true;
            return count(number);
        }

        static long count(long number) {
            return burn(number);
        }
    }
}
