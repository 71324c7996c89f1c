import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.util.List;
import java.util.Properties;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.ReentrantLock;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.source.SourceFunction;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.ipc.PriorityFunction;
import org.apache.hadoop.hbase.ipc.RpcScheduler;
import org.apache.hadoop.hbase.ipc.SimpleRpcScheduler;
import org.apache.hadoop.hbase.security.User;
import org.apache.hadoop.hbase.shaded.protobuf.generated.RPCProtos;
import org.apache.hadoop.ipc.ProtocolSignature;
import org.apache.hadoop.ipc.RPC;
import org.apache.hadoop.ipc.VersionedProtocol;
import org.apache.hbase.thirdparty.com.google.protobuf.Message;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.server.NIOServerCnxnFactory;
import org.apache.zookeeper.server.ZooKeeperServer;

/**
 * Servers and clients without work, in one JVM: Kafka's consumer, producer and admin client (without a broker), HBase's
 * RPC scheduler, Hadoop's RPC server with a client, ZooKeeper's server with a client, a Flink cluster with a job, a timer, a
 * pool, a queue's worker. And a thread for each wait of a job, in a method of `Job`, which never ends.
 */
public final class Servers {
    private Servers() {}

    public static void main(String[] args) throws Exception {
        new Job().start();
        kafka();
        hbase();
        hadoop();
        zooKeeper();
        flink();
        new Timer("timer", true).schedule(new TimerTask() {
            @Override public void run() {}
        }, 0, 1_000);
        ExecutorService pool = Executors.newFixedThreadPool(3, Servers::daemon);
        for (int i = 0; i < 3; i++) pool.execute(() -> {});
        ArrayBlockingQueue<Runnable> work = new ArrayBlockingQueue<>(1);
        daemon(() -> workLoop(work)).start();
        System.out.println("ready");
        Job.join();
    }

    private static void workLoop(ArrayBlockingQueue<Runnable> work) {
        try {
            while (true) work.take().run();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static Thread daemon(Runnable task) {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        return thread;
    }

    private static void kafka() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", "127.0.0.1:1");
        settings.put("group.id", "group");
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        settings.put("key.serializer", StringSerializer.class.getName());
        settings.put("value.serializer", StringSerializer.class.getName());
        daemon(() -> {
            KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings);
            consumer.subscribe(List.of("topic"));
            while (true) consumer.poll(java.time.Duration.ofSeconds(1));
        }).start();
        daemon(() -> {
            KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings);
            consumer.assign(List.of(new TopicPartition("topic", 0)));
            consumer.seek(new TopicPartition("topic", 0), 0);
            while (true) consumer.poll(java.time.Duration.ofSeconds(1));
        }).start();
        new KafkaProducer<String, String>(settings);
        AdminClient.create(settings);
    }

    private static void hbase() {
        PriorityFunction priority = new PriorityFunction() {
            @Override public int getPriority(RPCProtos.RequestHeader header, Message param, User user) {
                return 0;
            }

            @Override public long getDeadline(RPCProtos.RequestHeader header, Message param) {
                return 0;
            }
        };
        RpcScheduler scheduler = new SimpleRpcScheduler(HBaseConfiguration.create(), 3, 2, 2, priority, 100);
        scheduler.init(new RpcScheduler.Context() {
            @Override public InetSocketAddress getListenerAddress() {
                return new InetSocketAddress(InetAddress.getLoopbackAddress(), 1);
            }
        });
        scheduler.start();
    }

    /** What Hadoop's server serves. */
    public interface Echo extends VersionedProtocol {
        long versionID = 1;

        int echo(int number);
    }

    private static void hadoop() throws Exception {
        Echo instance = new Echo() {
            @Override public int echo(int number) {
                return number;
            }

            @Override public long getProtocolVersion(String protocol, long version) {
                return versionID;
            }

            @Override public ProtocolSignature getProtocolSignature(String protocol, long version, int methods) {
                return new ProtocolSignature(versionID, null);
            }
        };
        org.apache.hadoop.conf.Configuration settings = new org.apache.hadoop.conf.Configuration();
        settings.set("hadoop.security.authentication", "simple");
        RPC.Server server = new RPC.Builder(settings).setProtocol(Echo.class).setInstance(instance)
            .setBindAddress("127.0.0.1").setPort(0).setNumHandlers(3).build();
        server.start();
        RPC.getProxy(Echo.class, Echo.versionID, server.getListenerAddress(), settings).echo(1);
    }

    private static void zooKeeper() throws Exception {
        java.io.File folder = Files.createTempDirectory("zookeeper").toFile();
        NIOServerCnxnFactory factory = new NIOServerCnxnFactory();
        factory.configure(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 10);
        factory.startup(new ZooKeeperServer(folder, folder, 2_000));
        new ZooKeeper("127.0.0.1:" + factory.getLocalPort(), 30_000, event -> {}).getChildren("/", false);
    }

    private static void flink() throws Exception {
        StreamExecutionEnvironment job = StreamExecutionEnvironment.createLocalEnvironment(1, new Configuration());
        job.addSource(new Silent()).keyBy(number -> number % 2).map(number -> number + 1).print();
        job.executeAsync();
    }

    /** A source that has one number, and then sleeps in a Flink task. */
    public static final class Silent implements SourceFunction<Long> {
        @Override public void run(SourceContext<Long> context) throws Exception {
            context.collect(1L);
            sleeping();
        }

        private void sleeping() throws InterruptedException {
            Thread.sleep(Long.MAX_VALUE);
        }

        @Override public void cancel() {}
    }

    /** Each method waits for ever in a thread of its own. */
    static final class Job {
        private final Object monitor = new Object();
        private final ReentrantLock lock = new ReentrantLock();

        void start() throws Exception {
            daemon(this::holdAndSleep).start();
            while (!lock.isLocked()) Thread.sleep(1);
            ServerSocket silent = new ServerSocket(0, 9, InetAddress.getLoopbackAddress());
            ExecutorService pool = Executors.newCachedThreadPool(Servers::daemon);
            for (Waiting one : List.<Waiting>of(this::locked, this::blocked, this::waiting, this::future, this::result,
                () -> reply(silent))) {
                pool.execute(() -> {
                    try {
                        one.run();
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                });
            }
        }

        private interface Waiting {
            void run() throws Exception;
        }

        private void holdAndSleep() {
            synchronized (monitor) {
                lock.lock();
                nap();
            }
        }

        private void nap() {
            try {
                Thread.sleep(Long.MAX_VALUE);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }

        private void locked() {
            lock.lock();
        }

        private void blocked() {
            synchronized (monitor) {
                nap();
            }
        }

        private void waiting() throws InterruptedException {
            Object own = new Object();
            synchronized (own) {
                own.wait();
            }
        }

        private void future() throws Exception {
            new CompletableFuture<String>().get();
        }

        private void result() throws InterruptedException {
            new ArrayBlockingQueue<String>(1).take();
        }

        private void reply(ServerSocket silent) throws Exception {
            try (Socket socket = new Socket(silent.getInetAddress(), silent.getLocalPort())) {
                InputStream answer = socket.getInputStream();
                answer.read();
            }
        }

        static void join() throws InterruptedException {
            Thread.currentThread().join();
        }
    }
}
