import java.util.function.LongUnaryOperator;
import java.util.function.Supplier;

/** Burns in lambdas, through classes that have no name in the source. Ends with its stdin. */
public final class Lambdas {
    private static volatile long sink;

    private static LongUnaryOperator burner() {
        LongUnaryOperator first = x -> {
            for (int i = 0; i < 7_000; i++) x = x * 6364136223846793005L + 1442695040888963407L;
            return x;
        };
        return first.andThen(x -> {
            for (int i = 0; i < 3_000; i++) x = x * 6364136223846793005L + i;
            return x;
        });
    }

    private static void burn(Supplier<LongUnaryOperator> burner) {
        while (true) sink = burner.get().applyAsLong(sink);
    }

    public static void main(String[] arguments) throws Exception {
        LongUnaryOperator made = burner();
        Thread thread = new Thread(() -> burn(() -> made), "burner");
        thread.setDaemon(true);
        thread.start();
        System.out.println("ready pid=0");
        System.out.flush();
        while (System.in.read() >= 0) continue;
    }
}
