import java.util.HashMap;

/** Two threads of compiled code, recursive through interfaces, until standard input ends. */
public class Deep {
    interface Op {
        long run(int depth, int seed);
    }

    static final Op[] OPS = {Deep::add, Deep::text, Deep::map};
    static final int[] DATA = new int[4096];
    static volatile boolean stopped;
    static volatile long sink;

    static long next(int depth, int seed) {
        return OPS[(seed * 7 + depth) % OPS.length].run(depth - 1, seed * 31 + depth & 0xffff);
    }

    static long add(int depth, int seed) {
        long sum = depth <= 0 ? 0 : next(depth, seed);
        for (int i = 0; i < 200; i++) {
            sum += DATA[(i * 31 + seed) & 4095] * i;
        }
        return sum;
    }

    static long text(int depth, int seed) {
        return depth <= 0 ? Integer.toString(seed).hashCode() : next(depth, seed) + 1;
    }

    static long map(int depth, int seed) {
        if (depth > 0) {
            return next(depth, seed) + 2;
        }
        HashMap<Integer, Integer> counts = new HashMap<>();
        for (int i = 0; i < 50; i++) {
            counts.merge(i * seed & 7, 1, Integer::sum);
        }
        return counts.size();
    }

    static void burn() {
        for (int seed = 0; !stopped; seed = (seed + 1) & 0x3f) {
            sink += next(4 + seed % 16, seed);
        }
    }

    public static void main(String[] arguments) throws Exception {
        for (String name : new String[] {"java-one", "worker-two"}) {
            Thread thread = new Thread(Deep::burn, name);
            thread.setDaemon(true);
            thread.start();
        }
        Thread.sleep(1500);
        System.out.println("warm");
        while (System.in.read() >= 0) { }
        stopped = true;
    }
}
