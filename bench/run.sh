#!/usr/bin/env bash
# Measures peaklane against the reference server and beside oha, and prints the table of docs/benchmarks.md.
#   bench/run.sh [--scale N] [--only traps,errors,throughput,memory,start,release]
# Builds what it needs into bench/out (oha, once) and target/. Wants a quiet machine with two cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
oha_version=1.16.0
out=$PWD/bench/out
target=${CARGO_TARGET_DIR:-$PWD/target}
mkdir -p "$out"

if ! "$out/tools/bin/oha" --version 2>/dev/null | grep -qxF "oha $oha_version"; then
  CARGO_TARGET_DIR=$out/oha-build cargo install oha --version "$oha_version" --root "$out/tools" --locked
  rm -rf "$out/oha-build"
fi
cargo build --release --locked -p peaklane
CARGO_TARGET_DIR=$out/refserver cargo build --release --locked --manifest-path bench/refserver/Cargo.toml

exec python3 -B bench/measure.py --peaklane "$target/release/peaklane" --refserver "$out/refserver/release/refserver" \
  --oha "$out/tools/bin/oha" --out "$out" "$@"
