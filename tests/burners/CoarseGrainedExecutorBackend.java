package org.apache.spark.executor;

/** A burner that goes by the name of a Spark executor. */
public final class CoarseGrainedExecutorBackend {
    private CoarseGrainedExecutorBackend() {}

    public static void main(String[] arguments) throws Exception {
        // By reflection: a class without a package cannot be named from one that has a package.
        Class.forName("Burner").getMethod("main", String[].class).invoke(null, (Object) arguments);
    }
}
