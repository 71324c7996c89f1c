package truth;

import java.util.regex.Pattern;

/** One thread, truth-patterns-1, that allocates in nothing but {@code compiling} and {@code matching} patterns. */
final class Patterns {
    private static final String EXPRESSION = "(a|b[c-f&&[^d]]+|\\d{3,5}x?)(?:foo|[^\\s,;]*)(\\w+)$";
    private static final String TEXT = "one, two; three, 123x, four";
    private static final Pattern COMPILED = Pattern.compile(EXPRESSION);

    private Patterns() {}

    static void start() {
        Truth.inBackground("truth-patterns-1", () -> {
            while (true) {
                for (int i = 0; i < 200; i++) {
                    compiling();
                    matching();
                }
                Truth.sleep(1_000_000);
            }
        });
    }

    private static Pattern compiling() {
        return Pattern.compile(EXPRESSION);
    }

    private static boolean matching() {
        return COMPILED.matcher(TEXT).find();
    }
}
