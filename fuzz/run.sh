#!/usr/bin/env bash
# Fuzzes one entry: bash fuzz/run.sh ENTRY [SECONDS]. Needs a nightly toolchain and cargo-fuzz.
set -euo pipefail
entry=${1:?name an entry: sse, reading, h1, retry_after, config, csv, classify}
seconds=${2:-60}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p "fuzz/corpus/$entry"
# The stream cases as inputs, beside the seeds that are kept.
PEAKLANE_FUZZ_CORPUS=$PWD/fuzz/corpus cargo test -q -p peaklane --test fuzz every_stream_case
cargo +nightly fuzz run "$entry" "fuzz/corpus/$entry" "testdata/fuzz/$entry" -- \
  -max_total_time="$seconds" -max_len=16384 -timeout=10 -rss_limit_mb=2048
