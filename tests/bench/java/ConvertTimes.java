import java.io.OutputStream;
import java.io.PrintStream;

/**
 * How long jfr-converter takes when its JVM is warm: converts a recording again and again in one JVM, and
 * prints the seconds of each of the last rounds.
 *
 * ConvertTimes WARM-UPS ROUNDS ARGUMENT-OF-THE-CONVERTER...
 */
public final class ConvertTimes {
    private ConvertTimes() {}

    public static void main(String[] arguments) throws Exception {
        int warmUps = Integer.parseInt(arguments[0]);
        int rounds = Integer.parseInt(arguments[1]);
        String[] command = java.util.Arrays.copyOfRange(arguments, 2, arguments.length);
        PrintStream out = System.out;
        System.setOut(new PrintStream(OutputStream.nullOutputStream()));
        Class<?> converter = Class.forName("Main");
        var main = converter.getMethod("main", String[].class);
        for (int round = -warmUps; round < rounds; round++) {
            long begin = System.nanoTime();
            main.invoke(null, (Object) command.clone());
            if (round >= 0) {
                out.println((System.nanoTime() - begin) / 1e9);
            }
        }
    }
}
