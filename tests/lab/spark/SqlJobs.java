import static org.apache.spark.sql.functions.avg;
import static org.apache.spark.sql.functions.broadcast;
import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.count;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.sum;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.types.DataTypes;

/** Applications with SQL queries: {@code SqlJobs MASTER LOGS NAME[,SETTING=VALUE]...}, as CoreJobs. */
public final class SqlJobs {
    private SqlJobs() {}

    public static void main(String[] arguments) throws Exception {
        for (String application : Arrays.asList(arguments).subList(2, arguments.length)) {
            SparkSession spark = SparkSession.builder()
                .config(CoreJobs.settings(arguments[0], arguments[1], application)).getOrCreate();
            System.out.println(application + " " + spark.sparkContext().applicationId());
            try {
                run(spark);
            } finally {
                spark.stop();
            }
        }
    }

    private static void run(SparkSession spark) throws Exception {
        String folder = Files.createTempDirectory("tables").toString();
        Dataset<Row> numbers = spark.range(0, 20_000, 1, 4).toDF("id").withColumn("part", col("id").mod(17));
        numbers.write().parquet("file://" + folder + "/numbers");
        spark.range(17).toDF("part").withColumn("name", col("part").cast("string"))
            .write().parquet("file://" + folder + "/names");
        Dataset<Row> facts = spark.read().parquet("file://" + folder + "/numbers");
        Dataset<Row> names = spark.read().parquet("file://" + folder + "/names");
        facts.createOrReplaceTempView("facts");
        names.createOrReplaceTempView("names");

        spark.sparkContext().setJobGroup("report", "joins and aggregates", false);
        facts.join(broadcast(names), "part").groupBy("name")
            .agg(count(lit(1)).as("rows"), sum("id").as("total"), avg("id")).orderBy(col("total").desc()).collectAsList();
        facts.hint("merge").join(facts.withColumnRenamed("part", "other").hint("merge"), "id").filter("part < 5").count();
        spark.sql("select part, count(*) from facts where id > (select avg(id) from facts) group by part").collectAsList();
        spark.sql("select count(distinct part), count(distinct id) from facts").collectAsList();
        spark.sparkContext().clearJobGroup();

        Dataset<Row> cached = facts.filter("part > 3").cache();
        cached.count();
        cached.groupBy("part").count().join(cached.groupBy("part").agg(sum("id")), "part").collectAsList();
        facts.union(facts).repartition(5).sortWithinPartitions("id").write().csv("file://" + folder + "/csv");
        facts.limit(3).collectAsList();

        spark.udf().register("picky", (UDF1<Long, Long>) id -> {
            if (id == 777) throw new IllegalStateException("not this one");
            return id;
        }, DataTypes.LongType);
        try {
            spark.sql("select sum(picky(id)) from facts").collectAsList();
        } catch (Exception expected) {
            System.out.println("failed as expected");
        }
        spark.sql("create or replace temp view none as select * from facts where false");
        spark.sql("select * from none join names using (part)").collectAsList();
    }
}
