import java.util.Random;
import java.util.concurrent.CountDownLatch;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.DiscardingSink;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StringField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.store.ByteBuffersDirectory;

/** Jobs that no rule was made for: a search engine, and the words of a stream. They end with their input. */
public final class UnknownJobs {
    private static final CountDownLatch WARM_UP = new CountDownLatch(100_000);

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("lucene")) index();
        else stream();
    }

    private static String line(Random random) {
        StringBuilder line = new StringBuilder();
        for (int i = 0; i < 20; i++) line.append("word").append((int) Math.abs(random.nextGaussian() * 2000)).append(' ');
        return line.toString();
    }

    private static void index() throws Exception {
        Random random = new Random(3);
        for (int round = 0; System.in.available() == 0; round++) {
            try (ByteBuffersDirectory directory = new ByteBuffersDirectory()) {
                try (IndexWriter writer = new IndexWriter(directory, new IndexWriterConfig(new StandardAnalyzer()))) {
                    for (int i = 0; i < 5000; i++) {
                        Document document = new Document();
                        document.add(new StringField("id", Integer.toString(i), Field.Store.YES));
                        document.add(new TextField("text", line(random), Field.Store.YES));
                        writer.addDocument(document);
                    }
                }
                try (DirectoryReader reader = DirectoryReader.open(directory)) {
                    IndexSearcher searcher = new IndexSearcher(reader);
                    for (int i = 0; i < 2000; i++) {
                        BooleanQuery.Builder query = new BooleanQuery.Builder();
                        for (int j = 0; j < 3; j++) {
                            query.add(new TermQuery(new Term("text", "word" + random.nextInt(2000))), BooleanClause.Occur.SHOULD);
                        }
                        for (var hit : searcher.search(query.build(), 10).scoreDocs) searcher.storedFields().document(hit.doc);
                    }
                }
            }
            if (round == 2) System.out.println("ready");
        }
    }

    private static void stream() throws Exception {
        StreamExecutionEnvironment job = StreamExecutionEnvironment.createLocalEnvironment(2);
        job.fromSequence(0, Long.MAX_VALUE).map(number -> line(new Random(number))).returns(Types.STRING)
            .flatMap((FlatMapFunction<String, Tuple2<String, Integer>>) (line, out) -> {
                for (String word : line.split(" ")) out.collect(Tuple2.of(word, 1));
                WARM_UP.countDown();
            }).returns(Types.TUPLE(Types.STRING, Types.INT))
            .keyBy(word -> word.f0).sum(1).addSink(new DiscardingSink<>());
        job.executeAsync("words");
        WARM_UP.await();
        System.out.println("ready");
        System.in.read();
        System.exit(0);
    }
}
