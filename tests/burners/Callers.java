import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.concurrent.ConcurrentHashMap;

/** Burns CPU time in stubs: a digest, copies and a clock. Their callers are inlined, so only debug information names them. */
public final class Callers {
    private static final long WARM = 3_000_000_000L;
    private static final ConcurrentHashMap<String, Integer> SEEN = new ConcurrentHashMap<>();
    private static final byte[] SOURCE = new byte[64 << 10];
    private static final byte[] TARGET = new byte[64 << 10];
    private static volatile long result;

    private static int checksum(String text, MessageDigest digest) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        Integer seen = SEEN.get(text);
        digest.update(bytes, 0, bytes.length);
        digest.update(SOURCE, 0, 8 << 10);
        return bytes.length + (seen == null ? 0 : seen);
    }

    private static int copy(int number) {
        for (int to = 0; to < 4; to++) {
            System.arraycopy(SOURCE, number & 1023, TARGET, to, 48 << 10);
        }
        return TARGET[number & 4095];
    }

    private static long clock() {
        long sum = 0;
        for (int times = 0; times < 400; times++) {
            sum += System.nanoTime() & 7;
        }
        return sum;
    }

    private static void burn(long nanos) throws Exception {
        MessageDigest digest = MessageDigest.getInstance("MD5");
        long begin = System.nanoTime();
        for (int number = 0; System.nanoTime() - begin < nanos; number++) {
            result += checksum("order-" + (number & 255), digest) + copy(number) + clock();
        }
    }

    public static void main(String[] arguments) throws Exception {
        for (int number = 0; number < 256; number += 3) {
            SEEN.put("order-" + number, number);
        }
        burn(WARM);
        System.out.println("ready pid=" + new java.io.File("/proc/self").getCanonicalFile().getName());
        Thread burner = new Thread(() -> {
            try {
                burn(Long.MAX_VALUE);
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        });
        burner.setDaemon(true);
        burner.start();
        while (System.in.read() >= 0) { }
    }
}
