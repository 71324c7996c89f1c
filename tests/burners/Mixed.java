import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Work as programs do it: words are counted, sorted, hashed and walked through recursively. */
final class Mixed extends Burner.Work {
    private static final int WORDS = 400;
    private static final int DEPTH = 40;

    private final String text = makeText();

    Mixed() {
        super(70);
    }

    @Override
    long burn(long until) {
        long rounds = 0;
        do {
            Map<String, Integer> counts = count(text);
            List<String> words = sorted(counts);
            Burner.sink = descend(words, DEPTH) + checksum(words);
            rounds++;
        } while (Burner.cpuNanos() < until);
        return rounds;
    }

    private static String makeText() {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < WORDS; i++) text.append("word").append((i * 7919) % 151).append(' ');
        return text.toString();
    }

    private static Map<String, Integer> count(String text) {
        Map<String, Integer> counts = new HashMap<>();
        int start = 0;
        for (int end = text.indexOf(' '); end >= 0; end = text.indexOf(' ', start)) {
            counts.merge(text.substring(start, end), 1, Integer::sum);
            start = end + 1;
        }
        return counts;
    }

    private static List<String> sorted(Map<String, Integer> counts) {
        List<String> words = new ArrayList<>(counts.keySet());
        Collections.sort(words);
        return words;
    }

    private static long descend(List<String> words, int depth) {
        return depth == 0 ? checksum(words) : 31 * descend(words, depth - 1) + depth;
    }

    private static long checksum(List<String> words) {
        long sum = 0;
        for (String word : words) {
            for (int i = 0; i < word.length(); i++) sum = sum * 131 + word.charAt(i);
        }
        return sum;
    }
}
