#!/bin/sh
# run.sh SECONDS [TARGET…]: each target for so long. The corpus is kept in the cache; what crashes a target is in
# build/fuzz and the exit code is 1. The instrumentation is LLVM's own and works with a stable compiler.
set -eu

seconds=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/hprofiler"
corpus="$cache/fuzz-corpus"
found="$top/build/fuzz"
mkdir -p "$found"

export CARGO_TARGET_DIR="$cache/target-fuzz"
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
coverage="$coverage -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
coverage="$coverage -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
host=$(rustc -vV | sed -n 's/^host: //p')
# With --target the flags are not those of build scripts and macros, which cannot be linked with them.
RUSTFLAGS="$coverage -Ccodegen-units=1" cargo build --quiet --release --manifest-path "$here/Cargo.toml" --target "$host"

(cd "$top" && "${PYTHON:-python3}" "$here/seeds.py" "$corpus")

[ $# -gt 0 ] || set -- folded pprof compact speedscope perf_script perf_data perf_live symbols jit_map jfr detected
status=0
for target in "$@"; do
  mkdir -p "$corpus/$target"
  log="$found/$target.log"
  if nice -n 10 "$CARGO_TARGET_DIR/$host/release/$target" "$corpus/$target" \
    -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=400000 -len_control=50 \
    -print_final_stats=1 -artifact_prefix="$found/$target-" >"$log" 2>&1
  then
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    echo "$target: $runs inputs in $seconds s, nothing found"
  else
    status=1
    echo "$target: failed; the input is in $found, the log in $log:" >&2
    grep -A 2 -e panicked -e 'ERROR: libFuzzer' "$log" >&2
  fi
done
exit $status
