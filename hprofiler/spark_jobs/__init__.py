"""Jobs for spark-submit over an archive that is too large for one machine."""
