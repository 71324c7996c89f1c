import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.gson.Gson;
import com.ning.compress.lzf.LZFDecoder;
import com.ning.compress.lzf.LZFEncoder;
import com.univocity.parsers.csv.CsvParser;
import com.univocity.parsers.csv.CsvParserSettings;
import io.airlift.compress.zstd.ZstdCompressor;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpRequestDecoder;
import io.netty.handler.codec.http.HttpResponseEncoder;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.util.ReferenceCountUtil;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.Signature;
import java.text.DecimalFormat;
import java.text.MessageFormat;
import java.time.LocalDateTime;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.regex.Pattern;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import javax.xml.parsers.DocumentBuilder;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.transform.Transformer;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.dom.DOMSource;
import javax.xml.transform.stream.StreamResult;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.commons.codec.digest.MurmurHash3;
import org.apache.hadoop.conf.Configuration;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.Logger;
import org.apache.logging.log4j.core.config.Configurator;
import org.apache.logging.log4j.core.config.builder.api.ConfigurationBuilder;
import org.apache.logging.log4j.core.config.builder.api.ConfigurationBuilderFactory;
import org.apache.logging.log4j.core.config.builder.impl.BuiltConfiguration;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.example.data.simple.SimpleGroupFactory;
import org.apache.parquet.example.data.simple.convert.GroupRecordConverter;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.example.ExampleParquetWriter;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.io.ColumnIOFactory;
import org.apache.parquet.io.DelegatingPositionOutputStream;
import org.apache.parquet.io.DelegatingSeekableInputStream;
import org.apache.parquet.io.InputFile;
import org.apache.parquet.io.OutputFile;
import org.apache.parquet.io.PositionOutputStream;
import org.apache.parquet.io.RecordReader;
import org.apache.parquet.io.SeekableInputStream;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.MessageTypeParser;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.util.collection.unsafe.sort.RadixSort;
import org.tukaani.xz.LZMA2Options;
import org.tukaani.xz.XZOutputStream;
import org.w3c.dom.Document;
import org.xml.sax.InputSource;

/** Works in the categories that it is given, by libraries of data jobs ({@link Turns}). */
public final class LibraryBurner {
    private static volatile Object sink;

    public static void main(String[] arguments) throws Exception {
        Map<String, Turns.Work> wanted = new LinkedHashMap<>();
        for (String name : arguments) wanted.put(name, work(name));
        Turns.take(wanted);
    }

    private static Turns.Work work(String name) throws Exception {
        switch (name) {
            case "scan": return scan();
            case "records": return records();
            case "xml": return xml();
            case "json": return json();
            case "logging": return logging();
            case "network": return network();
            case "serialization": return serialization();
            case "compression": return compression();
            case "hashes": return hashes();
            case "crypto": return crypto();
            case "sort": return sort();
            case "copies": return copies();
            case "strings": return strings();
            case "dates": return dates();
            case "formatting": return formatting();
            case "big-numbers": return bigNumbers();
            case "stack-traces": return often(() -> sink = new IllegalStateException("a trace").getStackTrace());
            case "regex-compile": return often(() -> sink = Pattern.compile("(\\w+)=([0-9a-f]{1,8})(?:;|$)|^#.*$"));
            case "application": return application();
            default: throw new IllegalArgumentException(name);
        }
    }

    /** So often that asking for the time costs nothing beside it. */
    private static Turns.Work often(Turns.Work work) {
        return () -> {
            for (int i = 0; i < 200; i++) work.once();
        };
    }

    /** Parquet written and read in memory, and CSV. */
    private static Turns.Work scan() throws Exception {
        MessageType schema = MessageTypeParser.parseMessageType(
            "message row { required int64 id; required double price; required binary flag (STRING); }");
        SimpleGroupFactory rows = new SimpleGroupFactory(schema);
        Configuration configuration = new Configuration(false);
        CsvParser csv = new CsvParser(new CsvParserSettings());
        StringBuilder lines = new StringBuilder();
        for (int i = 0; i < 300; i++) lines.append(i).append(",name ").append(i).append(",\"quoted, ").append(i % 7).append("\"\n");
        String text = lines.toString();
        return () -> {
            Memory memory = new Memory();
            try (ParquetWriter<Group> writer = ExampleParquetWriter.builder(memory).withConf(configuration).withType(schema)
                    .withCompressionCodec(CompressionCodecName.UNCOMPRESSED).withPageWriteChecksumEnabled(false).build()) {
                for (int i = 0; i < 2000; i++) {
                    writer.write(rows.newGroup().append("id", (long) i).append("price", i * 0.5).append("flag", "AFNR".substring(i % 4)));
                }
            }
            try (ParquetFileReader reader = ParquetFileReader.open(memory)) {
                PageReadStore pages;
                while ((pages = reader.readNextRowGroup()) != null) {
                    RecordReader<Group> records = new ColumnIOFactory().getColumnIO(schema)
                        .getRecordReader(pages, new GroupRecordConverter(schema));
                    for (long i = 0; i < pages.getRowCount(); i++) sink = records.read();
                }
            }
            sink = csv.parseAll(new StringReader(text));
        };
    }

    /** A file of Parquet. */
    private static final class Memory implements InputFile, OutputFile {
        private final ByteArrayOutputStream bytes = new ByteArrayOutputStream(1 << 16);

        @Override public long getLength() {
            return bytes.size();
        }

        @Override public SeekableInputStream newStream() {
            byte[] content = bytes.toByteArray();
            int[] at = {0};
            ByteArrayInputStream in = new ByteArrayInputStream(content) {
                @Override public synchronized long skip(long count) {
                    return super.skip(count);
                }
            };
            return new DelegatingSeekableInputStream(in) {
                @Override public long getPos() {
                    return content.length - in.available();
                }

                @Override public void seek(long position) {
                    in.reset();
                    in.skip(position);
                }
            };
        }

        @Override public PositionOutputStream create(long block) {
            return new DelegatingPositionOutputStream(bytes) {
                @Override public long getPos() {
                    return bytes.size();
                }
            };
        }

        @Override public PositionOutputStream createOrOverwrite(long block) {
            return create(block);
        }

        @Override public boolean supportsBlockSize() {
            return false;
        }

        @Override public long defaultBlockSize() {
            return 0;
        }
    }

    private static Turns.Work records() {
        Schema schema = SchemaBuilder.record("Order").fields().requiredLong("id").requiredString("name").requiredDouble("price").endRecord();
        GenericDatumWriter<GenericRecord> writer = new GenericDatumWriter<>(schema);
        GenericDatumReader<GenericRecord> reader = new GenericDatumReader<>(schema);
        GenericRecord record = new GenericData.Record(schema);
        return () -> {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(bytes, null);
            for (int i = 0; i < 300; i++) {
                record.put("id", (long) i);
                record.put("name", "order");
                record.put("price", i * 0.5);
                writer.write(record, encoder);
            }
            encoder.flush();
            var decoder = DecoderFactory.get().binaryDecoder(bytes.toByteArray(), null);
            while (!decoder.isEnd()) sink = reader.read(null, decoder);
        };
    }

    private static Turns.Work xml() throws Exception {
        DocumentBuilder builder = DocumentBuilderFactory.newInstance().newDocumentBuilder();
        Transformer transformer = TransformerFactory.newInstance().newTransformer();
        StringBuilder text = new StringBuilder("<orders>");
        for (int i = 0; i < 200; i++) text.append("<order id='").append(i).append("'><price>").append(i * 3).append("</price></order>");
        String orders = text.append("</orders>").toString();
        return () -> {
            Document document = builder.parse(new InputSource(new StringReader(orders)));
            StringWriter out = new StringWriter();
            transformer.transform(new DOMSource(document), new StreamResult(out));
            sink = out;
        };
    }

    private static Turns.Work json() throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        Gson gson = new Gson();
        String text = mapper.writeValueAsString(document());
        return () -> {
            JsonNode tree = mapper.readTree(text);
            sink = tree.toString();
            sink = gson.toJson(gson.fromJson(text, Map.class));
        };
    }

    private static Turns.Work logging() {
        ConfigurationBuilder<BuiltConfiguration> builder = ConfigurationBuilderFactory.newConfigurationBuilder();
        builder.add(builder.newAppender("file", "File").addAttribute("fileName", "/dev/null").addAttribute("immediateFlush", false)
            .add(builder.newLayout("PatternLayout").addAttribute("pattern", "%d{ISO8601} %-5p [%t] %c{1}: %m%n")));
        builder.add(builder.newRootLogger(Level.INFO).add(builder.newAppenderRef("file")));
        Logger logger = Configurator.initialize(builder.build()).getLogger(LibraryBurner.class);
        return () -> {
            for (int i = 0; i < 100; i++) logger.info("read {} rows of {}", i, "orders");
        };
    }

    /** HTTP by Netty. */
    private static Turns.Work network() {
        byte[] request = "POST /orders HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nContent-Length: 5\r\n\r\nhello".getBytes(StandardCharsets.US_ASCII);
        EmbeddedChannel server = new EmbeddedChannel(new HttpRequestDecoder(), new HttpObjectAggregator(1 << 16), new HttpResponseEncoder());
        return () -> {
            for (int i = 0; i < 200; i++) {
                server.writeInbound(Unpooled.copiedBuffer(request));
                ReferenceCountUtil.release(server.readInbound());
                DefaultFullHttpResponse response = new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.OK);
                response.headers().set(HttpHeaderNames.CONTENT_LENGTH, 0);
                server.writeOutbound(response);
                for (ByteBuf out; (out = server.readOutbound()) != null; ) out.release();
            }
        };
    }

    private static Turns.Work serialization() {
        HashMap<String, Object> document = document();
        return () -> {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
                out.writeObject(document);
            }
            sink = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray())).readObject();
        };
    }

    private static Turns.Work compression() {
        byte[] text = text();
        ZstdCompressor zstd = new ZstdCompressor();
        byte[] out = new byte[zstd.maxCompressedLength(text.length)];
        return () -> {
            sink = zstd.compress(text, 0, text.length, out, 0, out.length);
            sink = LZFDecoder.decode(LZFEncoder.encode(text));
            try (XZOutputStream xz = new XZOutputStream(new ByteArrayOutputStream(), new LZMA2Options(1))) {
                xz.write(text, 0, 4000);
            }
        };
    }

    private static Turns.Work hashes() throws Exception {
        byte[] text = text();
        java.security.MessageDigest md5 = java.security.MessageDigest.getInstance("MD5");
        return () -> {
            sink = MurmurHash3.hash128x64(text);
            sink = md5.digest(text);
            sink = org.apache.commons.codec.digest.DigestUtils.sha1(text);
        };
    }

    private static Turns.Work crypto() throws Exception {
        byte[] text = text();
        KeyPair pair = KeyPairGenerator.getInstance("RSA").generateKeyPair();
        SecretKeySpec key = new SecretKeySpec(Arrays.copyOf(text, 16), "AES");
        Random random = new Random(9);
        return () -> {
            Signature signature = Signature.getInstance("SHA256withRSA");
            signature.initSign(pair.getPrivate());
            signature.update(text, 0, 100);
            sink = signature.sign();
            Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
            byte[] start = new byte[12];
            random.nextBytes(start);
            cipher.init(Cipher.ENCRYPT_MODE, key, new GCMParameterSpec(128, start));
            sink = cipher.doFinal(text);
        };
    }

    /** Of primitives, and by Spark. */
    private static Turns.Work sort() {
        int[] numbers = new Random(7).ints(20_000).toArray();
        long[] pairs = new Random(8).longs(20_000).toArray();
        org.apache.spark.unsafe.array.LongArray array = new org.apache.spark.unsafe.array.LongArray(
            org.apache.spark.unsafe.memory.MemoryBlock.fromLongArray(new long[40_000]));
        return () -> {
            int[] copy = numbers.clone();
            Arrays.sort(copy);
            Platform.copyMemory(pairs, Platform.LONG_ARRAY_OFFSET, array.getBaseObject(), array.getBaseOffset(), 8L * pairs.length);
            sink = RadixSort.sort(array, pairs.length, 0, 7, false, true);
            sink = copy;
        };
    }

    private static Turns.Work copies() {
        byte[] from = new byte[1 << 20];
        return () -> {
            sink = Arrays.copyOf(from, from.length);
            System.arraycopy(from, 0, from, 1 << 19, 1 << 19);
        };
    }

    private static Turns.Work strings() {
        String text = new String(text(), StandardCharsets.US_ASCII).substring(0, 2000);
        return often(() -> {
            sink = text.toUpperCase().replace("KEY", "name");
            sink = text.getBytes(StandardCharsets.UTF_16);
            sink = Integer.parseInt("12345") + Double.parseDouble("1.2345");
        });
    }

    private static Turns.Work dates() {
        DateTimeFormatter format = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss");
        return often(() -> sink = LocalDateTime.parse("2026-11-20 06:12:03", format).format(format));
    }

    private static Turns.Work formatting() {
        DecimalFormat number = new DecimalFormat("#,##0.00");
        MessageFormat message = new MessageFormat("{0} rows of {1}");
        return often(() -> {
            sink = number.format(12345.678);
            sink = message.format(new Object[] {17, "orders"});
        });
    }

    private static Turns.Work bigNumbers() {
        BigDecimal price = new BigDecimal("123456789012345678901.2345");
        return () -> {
            BigDecimal sum = BigDecimal.ZERO;
            for (int i = 1; i < 1000; i++) sum = sum.add(price.multiply(price).divide(BigDecimal.valueOf(i), 10, RoundingMode.HALF_UP));
            sink = sum;
        };
    }

    private static Turns.Work application() {
        int[] numbers = new Random(7).ints(20_000).toArray();
        return () -> {
            long sum = 0;
            for (int round = 0; round < 50; round++) {
                for (int number : numbers) sum = sum * 31 + (number ^ (sum >>> 7));
            }
            sink = sum;
        };
    }

    private static byte[] text() {
        StringBuilder text = new StringBuilder();
        Random random = new Random(3);
        while (text.length() < 20_000) {
            text.append("key").append(random.nextInt(100)).append('=').append(random.nextInt(1000)).append(";\n");
        }
        return text.toString().getBytes(StandardCharsets.US_ASCII);
    }

    private static HashMap<String, Object> document() {
        HashMap<String, Object> document = new HashMap<>();
        Random random = new Random(5);
        for (int i = 0; i < 100; i++) {
            List<Object> values = new ArrayList<>();
            for (int j = 0; j < 10; j++) values.add(random.nextInt());
            document.put("field" + i, values);
        }
        return document;
    }
}
