import com.esotericsoftware.kryo.Kryo;
import com.esotericsoftware.kryo.io.Input;
import com.esotericsoftware.kryo.io.Output;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.github.luben.zstd.Zstd;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.regex.Pattern;
import java.util.zip.CRC32;
import java.util.zip.Deflater;
import javax.crypto.Cipher;
import javax.crypto.spec.SecretKeySpec;
import net.jpountz.lz4.LZ4Factory;
import org.xerial.snappy.Snappy;

/** Works in known categories ({@link Turns}). */
public final class CategoryBurner {
    private static volatile Object sink;

    public static void main(String[] arguments) throws Exception {
        Turns.take(works());
    }

    private static Map<String, Turns.Work> works() throws Exception {
        byte[] text = text();
        byte[] packed = LZ4Factory.safeInstance().fastCompressor().compress(text);
        byte[] zipped = Zstd.compress(text, 3);
        Pattern pattern = Pattern.compile("(\\w+)=([0-9]+)(;|$)");
        String lines = new String(text);
        ObjectMapper mapper = new ObjectMapper();
        Map<String, Object> document = document();
        String json = mapper.writeValueAsString(document);
        Kryo kryo = new Kryo();
        Cipher cipher = Cipher.getInstance("AES/ECB/PKCS5Padding");
        cipher.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(Arrays.copyOf(text, 16), "AES"));
        int[] numbers = new Random(7).ints(20_000).toArray();
        Map<String, Turns.Work> works = new HashMap<>();
        works.put("compression", () -> {
            sink = LZ4Factory.safeInstance().safeDecompressor().decompress(packed, text.length);
            sink = Snappy.compress(text);
            sink = Zstd.decompress(zipped, text.length);
            Deflater deflater = new Deflater();
            deflater.setInput(text, 0, 10_000);
            deflater.finish();
            deflater.deflate(new byte[20_000]);
            deflater.end();
        });
        works.put("serialization", () -> {
            Output output = new Output(1 << 16, -1);
            kryo.writeObject(output, document);
            sink = kryo.readObject(new Input(output.toBytes()), HashMap.class);
        });
        works.put("json", () -> sink = mapper.writeValueAsString(mapper.readValue(json, Map.class)));
        works.put("regex-match", () -> sink = pattern.matcher(lines).results().count());
        works.put("hashes", () -> {
            sink = MessageDigest.getInstance("SHA-256").digest(text);
            CRC32 crc = new CRC32();
            crc.update(text);
            sink = crc.getValue();
        });
        works.put("crypto", () -> sink = cipher.doFinal(text));
        works.put("sort", () -> {
            Integer[] boxed = new Integer[numbers.length];
            for (int i = 0; i < boxed.length; i++) boxed[i] = numbers[i];
            Arrays.sort(boxed);
            sink = boxed;
        });
        works.put("application", () -> sink = own(numbers));
        return works;
    }

    /** Nothing but arithmetic. */
    private static long own(int[] numbers) {
        long sum = 0;
        for (int round = 0; round < 50; round++) {
            for (int number : numbers) sum = sum * 31 + (number ^ (sum >>> 7));
        }
        return sum;
    }

    private static byte[] text() {
        StringBuilder text = new StringBuilder();
        Random random = new Random(3);
        while (text.length() < 100_000) {
            text.append("key").append(random.nextInt(100)).append('=').append(random.nextInt(1000)).append(";\n");
        }
        return text.toString().getBytes();
    }

    private static HashMap<String, Object> document() {
        HashMap<String, Object> document = new HashMap<>();
        Random random = new Random(5);
        for (int i = 0; i < 300; i++) {
            List<Object> values = new ArrayList<>();
            for (int j = 0; j < 10; j++) values.add(random.nextInt());
            document.put("field" + i, values);
        }
        return document;
    }
}
