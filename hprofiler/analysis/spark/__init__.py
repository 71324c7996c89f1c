"""What matters in a Spark application, in codes and numbers: findings, and where its time went."""
