#!/bin/sh
# What Spark runs in its pods, `driver ARGUMENTS...` or `executor`, with a shell and nothing else.
set -eu
classes="${SPARK_CONF_DIR-}:/opt/spark/jars/*"
role=$1
shift
if [ "$role" = driver ]; then
  set -- org.apache.spark.deploy.SparkSubmit \
    --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" --deploy-mode client "$@"
  for package in java.lang java.lang.invoke java.net java.nio java.util java.util.concurrent sun.nio.ch; do
    set -- "--add-opens=java.base/$package=ALL-UNNAMED" "$@"
  done
  exec java -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$classes" "$@"
fi
number=0
while eval "option=\${SPARK_JAVA_OPT_$number-}" && [ -n "$option" ]; do
  set -- "$@" "$option"
  number=$((number + 1))
done
exec java "$@" "-Xmx$SPARK_EXECUTOR_MEMORY" -cp "$classes" \
  org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
  --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
  --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
  --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
