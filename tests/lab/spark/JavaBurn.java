import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import org.apache.spark.sql.api.java.UDF1;

/** A function of SQL that uses 400 µs of CPU time a row, in {@code burn}. */
public final class JavaBurn implements UDF1<Long, Long> {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final long NANOSECONDS = 400_000;

    @Override
    public Long call(Long row) {
        return burn(THREADS.getCurrentThreadCpuTime() + NANOSECONDS, row);
    }

    private static long burn(long until, long start) {
        long x = start;
        while (THREADS.getCurrentThreadCpuTime() < until) {
            for (int i = 0; i < 10_000; i++) x = x * 31 + (i ^ (x >>> 7));
        }
        return x;
    }
}
