#!/usr/bin/env python3
"""Measures peaklane against the reference server and beside oha, and prints the table of docs/benchmarks.md.

Server on core 0, client on core 1. Every row names its bar and its yardstick. `bench/run.sh` builds what this needs.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

import reference
import subject
import timing
import traps

SERVER_CPU, CLIENT_CPU = 0, 1
THROUGHPUT_MODEL = "ref-ttft0-itl0-n20"
TIMING_MODEL = "ref-ttft100-itl10-n50"
# One content chunk at once: the server spends so little on each request that its reads show when the client let go.
RELEASE_MODEL = "ref-ttft0-itl0-n1"

PROMPT = "Say hello."


def expected(model):
    """The whole answer of a plan. As the check of the burst it makes sure that every event was read right."""
    return " tok" * int(re.search(r"-n(\d+)", model)[1])


class Bench:
    """What the rows share: binaries, scratch folder, and the table that grows."""

    def __init__(self, arguments):
        self.peaklane = pathlib.Path(arguments.peaklane).resolve()
        self.refserver = pathlib.Path(arguments.refserver).resolve()
        self.oha = pathlib.Path(arguments.oha).resolve()
        self.out = pathlib.Path(arguments.out).resolve()
        self.scale = arguments.scale
        self.realtime = arguments.realtime
        self.scratch = self.out / "scratch"
        self.rows = []

    def row(self, name, value, bar, right, yardstick, **detail):
        """One line of the table; `right` is None for a figure without a bar."""
        self.rows.append({"name": name, "value": value, "bar": bar, "right": right, "yardstick": yardstick, **detail})
        mark = {True: "ok", False: "SHORT", None: "--"}[right]
        print(f"{mark:<6} {name:<46} {value:<40} bar: {bar}   [{yardstick}]", flush=True)

    def fresh(self):
        """An empty scratch folder: no run meets the store or the CSV of another."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)
        return self.scratch

    def burst(self, server, model, attempts, concurrency=None, connections="before", csv=None, memory=False, **more):
        """One `peaklane burst`; fails loudly when it did not make all its attempts."""
        command = [self.peaklane, "burst", "--base-url", server.base_url, "--model", model, "--api", "chat",
                   "--attempts", attempts, "--prompt", PROMPT, "--expect", expected(model), "--max-tokens", 64, "--no-warmup", "--retries", 0,
                   "--connections", connections, "--store", "sqlite:bench.db", "--format", "json", "-q"]
        if concurrency:
            command += ["--concurrency", concurrency]
        if csv:
            command += ["--csv", csv]
        for option, value in more.items():
            command += ["--" + option.replace("_", "-"), value]
        # With real-time priority the event loop would keep the store's writer waiting on the one core, and its queue full.
        realtime = self.realtime and not memory
        done = subject.run(command, cpu=CLIENT_CPU, cwd=self.scratch, memory=memory, realtime=realtime)
        if done.code != 0:
            raise SystemExit(f"{' '.join(map(str, command))}\nexit {done.code}\n{done.stderr}")
        done.answer = json.loads(done.stdout)
        return done

    def reference(self, **options):
        return reference.Reference(self.refserver, cpu=SERVER_CPU, realtime=self.realtime, **options)


def measure_traps(bench):
    results = traps.run_traps(bench.peaklane, bench.refserver, bench.fresh(), CLIENT_CPU, SERVER_CPU)
    passed = sum(not wrong for _, wrong, _ in results)
    worst = max(abs(e) for _, _, errors in results for e in errors.values())
    for trap, wrong, _ in results:
        for line in wrong:
            print(f"       trap `{trap.name}`: {line}")
    bench.row("traps: class, TTFT and first answer right", f"{passed} of {len(traps.TRAPS)}", "12 of 12",
              passed == len(traps.TRAPS) == 12, "server log", worst_error_ms=worst,
              missed=[trap.name for trap, wrong, _ in results if wrong])


def measure_errors(bench, concurrency, connections, bar_p50, bar_p99):
    """TTFT error of a steady run; the first `concurrency` arrivals (where cold connections would show) also apart."""
    attempts = max(concurrency * 10 // bench.scale, concurrency)
    folder = bench.fresh()
    with bench.reference(log=folder / "log.jsonl") as server:
        done = bench.burst(server, TIMING_MODEL, attempts, concurrency, connections, csv="rows.csv")
        records = server.records()
    rows = timing.read_rows(folder / "rows.csv")
    joined = timing.Joined(rows, records, reference.monotonic_minus_unix_ns())
    p50, p99, largest = timing.size_quantiles(joined.errors_ms)
    seen = timing.size_quantiles(joined.delivery_ms)
    whole = len(joined.errors_ms) == attempts and joined.unmatched_rows == joined.unmatched_records == 0
    first = timing.nearest_rank([abs(e) for e in joined.errors_ms[:concurrency]], 99)
    name = f"TTFT error, {concurrency} streams, connections {connections}"
    bench.row(name, f"p50 {p50:.2f} ms, p99 {p99:.2f} ms ({seen[0]:.2f}, {seen[1]:.2f})",
              f"p50 <= {bar_p50} ms, p99 <= {bar_p99} ms",
              whole and p50 <= bar_p50 and p99 <= bar_p99,
              "server log; in brackets from token written to token seen",
              matched=len(joined.errors_ms), delivery_ms=seen, attempts=attempts, unmatched=joined.unmatched_rows + joined.unmatched_records, max_ms=largest,
              first_wave_p99_ms=first, signed_median_ms=statistics.median(joined.errors_ms),
              most_in_flight=max(r["in_flight"] for r in records), cpu_s=done.cpu_s, wall_s=done.wall_s)


def oha_run(bench, server, attempts, concurrency):
    body = {"model": THROUGHPUT_MODEL, "messages": [{"role": "user", "content": PROMPT}], "max_tokens": 64,
            "temperature": 0, "stream": True, "stream_options": {"include_usage": True}}
    command = [bench.oha, "-n", attempts, "-c", concurrency, "--no-tui", "--output-format", "json", "-m", "POST",
               "-T", "application/json", "-d", json.dumps(body), server.base_url + "/chat/completions"]
    done = subject.run(command, cpu=CLIENT_CPU, cwd=bench.scratch, realtime=bench.realtime)
    if done.code != 0:
        raise SystemExit(f"oha: exit {done.code}\n{done.stderr}")
    done.answer = json.loads(done.stdout)
    return done


def measure_throughput(bench):
    """Ours and oha's in turns, five times each, on one server without a log; medians, and the ratio of pairs."""
    attempts, concurrency, tiny = max(20_000 // bench.scale, 640), 64, 64
    ours, theirs, cpu, ratios = [], [], [], []
    with bench.reference() as server:
        for _ in range(5):
            bench.fresh()
            before = server.stats()["finished"]
            full = bench.burst(server, THROUGHPUT_MODEL, attempts, concurrency)
            # The server counts too: all streams really happened.
            arrived = server.stats()["finished"] - before
            if arrived != attempts or passed_of(full.answer) != attempts:
                raise SystemExit(f"{attempts} attempts: {arrived} arrived, {passed_of(full.answer)} passed")
            bench.fresh()
            start = bench.burst(server, THROUGHPUT_MODEL, tiny, concurrency)
            other = oha_run(bench, server, attempts, concurrency)
            ours.append(attempts / full.wall_s)
            theirs.append(attempts / other.wall_s)
            ratios.append(ours[-1] / theirs[-1])
            cpu.append((full.cpu_s - start.cpu_s) / (attempts - tiny) * 1000)
    rate, ratio, cost = statistics.median(ours), statistics.median(ratios), statistics.median(cpu)
    bench.row("streams a second, one core, 20 chunks", f"{rate:,.0f}", ">= 10,000", rate >= 10_000,
              "wall clock of the whole command", all=ours, attempts=attempts)
    bench.row("the same as a share of oha", f"{ratio:.2f} (oha {statistics.median(theirs):,.0f})", ">= 0.4", ratio >= 0.4,
              "oha in the same run", all=ratios, oha=theirs)
    bench.row("CPU per 1,000 streams, start-up excluded", f"{cost:.3f} s", "<= 0.1 s", cost <= 0.1, "getrusage", all=cpu)


def passed_of(answer):
    """Passed attempts of `burst --format json`."""
    return sum(burst["passed"] for burst in answer["bursts"])


def measure_memory(bench):
    """Peak and slope of resident memory over a long run; records must spill to the store."""
    attempts = max(100_000 // bench.scale, 5_000)
    bench.fresh()
    with bench.reference() as server:
        done = bench.burst(server, THROUGHPUT_MODEL, attempts, 64, memory=True)
    samples = [kib for _, kib in done.resident_kib]
    fifth = max(len(samples) // 5, 1)
    early, late = statistics.median(samples[fifth:2 * fifth]), statistics.median(samples[-fifth:])
    peak = done.peak_kib / 1024
    bench.row(f"memory, 64 streams, {attempts:,} requests", f"peak {peak:.1f} MiB, {early / 1024:.1f} -> {late / 1024:.1f}",
              "<= 30 MiB, flat", peak <= 30 and late <= early * 1.1 + 512, "VmHWM, VmRSS",
              early_kib=early, late_kib=late, peak_kib=done.peak_kib, samples=len(samples))


def measure_start(bench):
    times = subject.start_times_s([bench.peaklane, "--help"], CLIENT_CPU, 200)
    floor = subject.start_times_s([shutil.which("true")], CLIENT_CPU, 200)
    median = statistics.median(times) * 1000
    bench.row("start (`--help`)", f"median {median:.1f} ms, least {times[0] * 1000:.1f}", "<= 10 ms", median <= 10,
              f"spawn to exit; `true` takes {statistics.median(floor) * 1000:.1f} ms", times_ms=[t * 1000 for t in times])


def measure_release(bench, size):
    """How late the attempts of a burst leave: the client's word, and the server's reads as a witness of its own.

    The server's figure is an upper bound: it reads one connection after the other on one core, so the last of 64
    reads is late by what the server spends on the other 63.
    """
    told, witnessed, spreads = [], [], []
    for _ in range(20):
        folder = bench.fresh()
        with bench.reference(log=folder / "log.jsonl") as server:
            bench.burst(server, RELEASE_MODEL, size, csv="rows.csv")
            records = server.records()
        offset = reference.monotonic_minus_unix_ns()
        rows = timing.read_rows(folder / "rows.csv")
        told.append(max(int(row["skew_us"]) / 1e3 for row in rows))
        reads = [r["first_read_ns"] for r in records]
        intended = min(int(row["intended_unix_us"]) for row in rows) * 1000 + offset
        witnessed.append((max(reads) - intended) / 1e6)
        spreads.append(timing.spread_ms(reads))
    mine, server_max = statistics.median(told), statistics.median(witnessed)
    bench.row(f"a burst of {size} leaves within", f"{mine:.2f} ms (worst of 20: {max(told):.2f})", "1 ms", mine <= 1,
              f"own skew; last read by the server {server_max:.2f} ms after the intended instant",
              told_ms=told, last_read_ms=witnessed, read_spread_ms=spreads)


def version(binary):
    return subprocess.run([binary, "--version"], capture_output=True, text=True).stdout.split()[-1]


def markdown(facts, rows):
    """The table of docs/benchmarks.md."""
    lines = [f"Measured {facts['date']} on {facts['cores']} cores of {facts['cpu_model']}, {facts['memory_gib']} GiB, "
             f"Linux {facts['kernel']}; peaklane {facts['peaklane']}, oha {facts['oha']}"
             + ("; server and client ran with real-time priority, because the machine was not quiet."
                if facts["realtime"] else "."), "",
             "| figure | measured | bar | holds | yardstick |", "| --- | --- | --- | --- | --- |"]
    for row in rows:
        holds = {True: "yes", False: "**no**", None: "-"}[row["right"]]
        lines.append(f"| {row['name']} | {row['value']} | {row['bar']} | {holds} | {row['yardstick']} |")
    return "\n".join(lines) + "\n"


TABLE_BEGIN, TABLE_END = "<!-- table:begin -->\n", "<!-- table:end -->\n"


def put_into(path, table):
    """Replaces what stands between the two marks of a document."""
    text = path.read_text()
    head, rest = text.split(TABLE_BEGIN, 1)
    tail = rest.split(TABLE_END, 1)[1]
    path.write_text(head + TABLE_BEGIN + table + TABLE_END + tail)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peaklane", required=True)
    parser.add_argument("--refserver", required=True)
    parser.add_argument("--oha", required=True)
    parser.add_argument("--out", required=True, help="folder for results.json and table.md")
    parser.add_argument("--docs", help="document whose table is replaced by what was measured, such as docs/benchmarks.md")
    parser.add_argument("--scale", type=int, default=1, help="divide the sizes of the runs, for a quick look (default 1)")
    parser.add_argument("--realtime", action="store_true",
                        help="run server and clients with real-time priority (root), where the machine cannot be made quiet")
    parser.add_argument("--only", help="rows to measure: traps, errors, throughput, memory, start, release")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    if os.cpu_count() < 2:
        raise SystemExit("needs two cores: one for the server, one for the client")
    parts = {
        "traps": lambda: measure_traps(bench),
        "errors": lambda: [measure_errors(bench, 64, "before", 0.2, 2.5), measure_errors(bench, 64, "inside", 0.2, 2.5),
                           measure_errors(bench, 256, "inside", 0.3, 10), measure_errors(bench, 256, "before", 0.3, 3)],
        "throughput": lambda: measure_throughput(bench),
        "memory": lambda: measure_memory(bench),
        "start": lambda: measure_start(bench),
        "release": lambda: [measure_release(bench, 8), measure_release(bench, 64)],
    }
    chosen = arguments.only.split(",") if arguments.only else list(parts)
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"warning: load average is {load:.1f}; figures of a busy machine say little", file=sys.stderr)
    for name in chosen:
        parts[name]()
    facts = reference.machine_facts() | {"peaklane": version(bench.peaklane), "oha": version(bench.oha),
                                           "load": load, "realtime": bench.realtime}
    (bench.out / "results.json").write_text(json.dumps({"machine": facts, "rows": bench.rows}, indent=1) + "\n")
    table = markdown(facts, bench.rows)
    (bench.out / "table.md").write_text(table)
    if arguments.docs:
        put_into(pathlib.Path(arguments.docs), table)
    short = [row["name"] for row in bench.rows if row["right"] is False]
    print(f"\nwrote {bench.out / 'results.json'} and table.md; " + (f"short of its bar: {'; '.join(short)}" if short else "every bar holds"))
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
