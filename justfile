# Short names for the commands of CONTRIBUTING.md. Nothing here that the shell cannot do without `just`.

# list what there is
default:
    @just --list

# what README calls the test command
test:
    cargo t

# the whole main job on simulated lanes, no key, no network
demo:
    cargo run --release -- demo

# formatting, lints, and what may enter the tree
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    cargo deny --offline check bans licenses sources

# format everything
fmt:
    cargo fmt --all

# everything that CI does, on this machine
ci:
    bash .ci/run

# the table of docs/benchmarks.md, measured here
bench:
    bench/run.sh

# write again what is generated from the code: schema, option reference
docs-regenerate:
    PEAKLANE_REGENERATE=1 cargo test --workspace
