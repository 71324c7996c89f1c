import java.lang.invoke.MethodHandles;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;

/** Keeps the JVM's collectors busy ({@code gc}) or its compilers ({@code jit}), until the end of its input. */
public final class JvmBurner {
    private static volatile Object sink;

    public static void main(String[] arguments) throws Exception {
        Turn turn = arguments[0].equals("gc") ? garbage() : code();
        for (int i = 0; i < 20; i++) turn.take();
        System.out.println("ready");
        while (System.in.available() == 0) turn.take();
    }

    private interface Turn {
        void take() throws Exception;
    }

    /** Objects that live long enough to be copied, then die. */
    private static Turn garbage() {
        ArrayDeque<Map<Integer, String>> alive = new ArrayDeque<>();
        return () -> {
            for (int i = 0; i < 200; i++) {
                Map<Integer, String> map = new HashMap<>();
                for (int key = 0; key < 100; key++) map.put(key * 1000, "value" + key);
                alive.add(map);
                if (alive.size() > 5000) alive.remove();
            }
        };
    }

    /** The same class over and over, each time new to the compilers. */
    private static Turn code() throws Exception {
        byte[] body = JvmBurner.class.getResourceAsStream("JvmBurner$Body.class").readAllBytes();
        return () -> {
            Class<?> hidden = MethodHandles.lookup().defineHiddenClass(body, true).lookupClass();
            Runnable once = (Runnable) hidden.getDeclaredConstructor().newInstance();
            long end = System.nanoTime() + 20_000_000;
            while (System.nanoTime() < end) once.run();
            sink = once;
        };
    }

    /** Many calls and loops: a lot of code for how long it runs. */
    static final class Body implements Runnable {
        private final StringBuilder text = new StringBuilder();
        private final HashMap<String, Integer> counts = new HashMap<>();

        @Override public void run() {
            text.setLength(0);
            for (int i = 0; i < 50; i++) {
                text.append(i).append(':').append(i * 0.5).append(Integer.toHexString(i)).append(String.valueOf(i % 3 == 0));
                counts.merge(text.substring(Math.max(0, text.length() - 3)), 1, Integer::sum);
                if (counts.size() > 1000) counts.clear();
            }
        }
    }
}
