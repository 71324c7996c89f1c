import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Does kinds of work in turns of a few milliseconds each, until the end of its input. It prints {@code ready}, and for
 * each line that it reads, how much CPU time each kind had so far.
 */
final class Turns {
    interface Work {
        void once() throws Exception;
    }

    private static final long TURN = 10_000_000;
    private static final long WARM_UP = 500_000_000;

    static void take(Map<String, Work> works) throws Exception {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        for (Work work : works.values()) {
            long end = threads.getCurrentThreadCpuTime() + WARM_UP;
            while (threads.getCurrentThreadCpuTime() < end) work.once();
        }
        Map<String, Long> spent = new LinkedHashMap<>();
        System.out.println("ready");
        while (true) {
            for (Map.Entry<String, Work> one : works.entrySet()) {
                long begin = threads.getCurrentThreadCpuTime();
                long now = begin;
                while (now - begin < TURN) {
                    one.getValue().once();
                    now = threads.getCurrentThreadCpuTime();
                }
                spent.merge(one.getKey(), now - begin, Long::sum);
            }
            if (System.in.available() > 0) {
                if (System.in.read() == 'q') return;
                StringBuilder line = new StringBuilder();
                spent.forEach((name, time) -> line.append(name).append('=').append(time).append(' '));
                System.out.println(line.toString().trim());
            }
        }
    }
}
