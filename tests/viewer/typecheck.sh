#!/bin/sh
# The viewer's types, which stand in its comments: what `make lint` runs. The compiler is fetched once, into the cache.
set -eu

version=7.0.2
here=$(cd "$(dirname "$0")" && pwd)
compiler="${XDG_CACHE_HOME:-$HOME/.cache}/hprofiler/typescript-$version"
if [ ! -d "$compiler" ]; then
  command -v npm >/dev/null || { echo "npm is missing: it fetches the TypeScript compiler" >&2; exit 1; }
  rm -rf "$compiler.new"
  npm install --silent --no-audit --no-fund --prefix "$compiler.new" "typescript@$version"
  mv "$compiler.new" "$compiler"
fi
exec "$compiler/node_modules/.bin/tsc" --allowJs --checkJs --strict --noEmit --noUnusedLocals --noUnusedParameters \
  --target es2022 --lib es2022,dom,dom.iterable --module es2022 --moduleResolution bundler \
  "$here"/../../flamegraph/viewer/main.js "$here"/../../flamegraph/viewer/plain.js
