import java.util.ArrayList;
import java.util.List;

/**
 * Allocates arrays of three sizes for as many milliseconds as the first argument says, and keeps some. Prints bytes and
 * objects for each method, and for the kept ones.
 */
public class AllocationBurner {
    static final int HEADER = 16;
    static final int SMALL = 104;
    static final int MEDIUM = 200_000;
    static final int LARGE = 2_000_000;
    static final int KEPT = 50_000;
    static final int MOST_KEPT = 2_000;
    static final List<Object> HELD = new ArrayList<>(MOST_KEPT);
    static volatile Object sink;

    public static void main(String[] arguments) throws Exception {
        long turns = Long.parseLong(arguments[0]) / 3;
        for (long turn = 0; turn < turns; turn++) {
            small();
            medium();
            if (turn % 8 == 0) {
                large();
            }
            Thread.sleep(1);
        }
        for (int i = 0; i < MOST_KEPT; i++) {
            keep();
        }
        sink = null;
        System.gc();
        Thread.sleep(500);
        String text = "small " + turns * 2_000 * (SMALL + HEADER) + " " + turns * 2_000;
        text += " medium " + turns * (MEDIUM + HEADER) + " " + turns;
        text += " large " + (turns + 7) / 8 * (LARGE + HEADER) + " " + (turns + 7) / 8;
        System.out.println(text + " kept " + (long) MOST_KEPT * (KEPT + HEADER) + " " + HELD.size());
    }

    static void small() {
        for (int i = 0; i < 2_000; i++) {
            sink = new byte[SMALL];
        }
    }

    static void medium() {
        sink = new byte[MEDIUM];
    }

    static void large() {
        sink = new byte[LARGE];
    }

    static void keep() {
        HELD.add(new byte[KEPT]);
    }
}
