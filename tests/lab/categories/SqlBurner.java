import static org.apache.spark.sql.functions.avg;
import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.count;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.sum;

import java.nio.file.Files;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** Queries like those of TPC-H, over and over until its input ends: scans, filters, joins, aggregates, sorts. */
public final class SqlBurner {
    public static void main(String[] arguments) throws Exception {
        SparkSession spark = SparkSession.builder().master("local[2]").appName("queries")
            .config("spark.ui.enabled", "false").config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "4").config("spark.driver.host", "127.0.0.1").getOrCreate();
        spark.sparkContext().setLogLevel("ERROR");
        String folder = "file://" + Files.createTempDirectory("tables");
        int rows = 1_500_000;
        spark.range(0, rows, 1, 2).selectExpr("id div 4 as orderkey", "id % 2000 as partkey",
                "cast(id % 50 as double) as quantity", "rand(1) * 1000 as price", "(id % 11) / 100.0 as discount",
                "date_add(date '1994-01-01', cast(id % 2500 as int)) as shipdate",
                "substr('AFNR', 1 + cast(id % 4 as int), 1) as flag", "concat('comment ', id) as comment")
            .write().parquet(folder + "/lineitem");
        spark.range(0, rows / 4, 1, 2).selectExpr("id as orderkey", "id % 30000 as custkey",
                "date_add(date '1994-01-01', cast(id % 2400 as int)) as orderdate", "cast(id % 5 as string) as priority")
            .write().parquet(folder + "/orders");
        Dataset<Row> items = spark.read().parquet(folder + "/lineitem");
        Dataset<Row> orders = spark.read().parquet(folder + "/orders");
        long end = Long.MAX_VALUE;
        for (int round = 0; System.in.available() == 0 && System.nanoTime() < end; round++) {
            items.filter("shipdate <= date '1998-09-02'").groupBy("flag")
                .agg(sum("quantity"), sum(col("price").multiply(lit(1).minus(col("discount")))), avg("price"), count(lit(1)))
                .orderBy("flag").collectAsList();
            items.filter("discount between 0.05 and 0.07 and quantity < 24")
                .agg(sum(col("price").multiply(col("discount")))).collectAsList();
            items.join(orders, "orderkey").filter("orderdate < date '1998-03-15' and shipdate > date '1995-03-15'")
                .groupBy("orderkey", "orderdate").agg(sum("price").as("revenue"))
                .orderBy(col("revenue").desc()).limit(10).collectAsList();
            items.filter("comment like '%77%'").groupBy("partkey").agg(count(lit(1)).as("n"), sum("quantity"))
                .filter("n > 1").sort(col("n").desc()).limit(100).collectAsList();
            if (round == 0) System.out.println("ready");
        }
    }
}
