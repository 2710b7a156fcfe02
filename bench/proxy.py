#!/usr/bin/env python3
"""Measures `peaklane proxy` beside nginx (and LiteLLM's proxy, where it is installed) on the same fast upstream, and prints the
table of docs/benchmarks.md.

    bench/proxy.py --peaklane target/release/peaklane --refserver bench/refserver/target/release/refserver
                   --refload bench/refserver/target/release/refload [--litellm VENV/bin/litellm] [--docs docs/benchmarks.md]

Upstream and load on core 0, the proxy on core 1. Each round measures all of them one after the other, so that a moment at which
the machine does something else meets all alike; a figure is the median of the rounds, with the least and the largest beside it.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

LOAD_CPU, PROXY_CPU = "0", "1"
STREAM_MODEL = "ref-ttft0-itl0-n20"
# 58 ms a stream. They are asked for every 50 ms, so that each connection has one under way all the time.
PACED_MODEL = "ref-ttft20-itl2-n20"
PACED_EVERY_MS = 50
CONNECTIONS = 64
IDLE_MODEL = "ref-ttft0-itl600000-n3"
BODY = 100_000
# Whole seconds of each load: CPU time is counted in hundredths.
SECONDS = 4
ROUNDS = 5
BEGIN, END = "<!-- proxy:begin -->\n", "<!-- proxy:end -->\n"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port, seconds=180):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit(f"nothing listens at port {port}")


# Real-time priority, for the rows of latency where `--realtime` asks for it: put before a command that is started then.
PRIORITY = []
ROUND_ROBIN = ["chrt", "--rr"]
LEVEL = "10"


def pinned(cpu, words, **how):
    # A group of its own: nginx and LiteLLM have workers, which outlive a parent that is killed.
    return subprocess.Popen([*PRIORITY, "taskset", "-c", cpu, *map(str, words)], start_new_session=True, **how)


def end(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def family(pid):
    """The process and its children."""
    found = [pid]
    for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(entry.parent.name))
    return found


def cpu_seconds(pid):
    total = 0
    for one in family(pid):
        fields = pathlib.Path(f"/proc/{one}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def rss_mib(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


class Bench:
    def __init__(self, arguments):
        self.a = arguments
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="proxy-bench-"))
        self.running = []
        self.upstream = free_port()
        self.start(LOAD_CPU, [arguments.refserver, "--listen", f"127.0.0.1:{self.upstream}"], self.upstream)

    def start(self, cpu, words, port, **how):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **how}
        process = pinned(cpu, words, **quiet)
        self.running.append(process)
        wait_for(port)
        return process

    def stop(self, process):
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
        end(process)
        self.running.remove(process)

    def close(self):
        for process in reversed(self.running):
            end(process)
        shutil.rmtree(self.scratch, ignore_errors=True)

    def peaklane(self, *more):
        port = free_port()
        store = self.scratch / f"{port}.db"
        words = [self.a.peaklane, "proxy", "-q", "--listen", f"127.0.0.1:{port}", "--store", f"sqlite:{store}",
                 "--upstream", f"http://127.0.0.1:{self.upstream}/v1", *more]
        return self.start(PROXY_CPU, words, port), port

    def nginx(self):
        port = free_port()
        folder = self.scratch / "nginx"
        (folder / "logs").mkdir(parents=True, exist_ok=True)
        conf = folder / "nginx.conf"
        conf.write_text(f"""
worker_processes 1; daemon off; pid {folder}/pid; error_log {folder}/logs/error.log;
worker_rlimit_nofile 65536;
events {{ worker_connections 30000; }}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s; keepalive_requests 1000000; client_body_buffer_size 256k;
  upstream up {{ server 127.0.0.1:{self.upstream}; keepalive 256; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=16384;
    location / {{ proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
                 proxy_request_buffering off; proxy_read_timeout 1h; }}
  }}
}}
""")
        return self.start(PROXY_CPU, ["nginx", "-c", conf, "-p", folder], port), port

    def litellm(self):
        port = free_port()
        conf = self.scratch / "litellm.yaml"
        conf.write_text(f"""
model_list:
  - model_name: "*"
    litellm_params: {{ model: "openai/*", api_base: "http://127.0.0.1:{self.upstream}/v1", api_key: none }}
""")
        # It wants a key of its own otherwise; here it is on loopback and for minutes.
        allowed = {**os.environ, "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}
        return self.start(PROXY_CPU, [self.a.litellm, "--config", conf, "--host", "127.0.0.1", "--port", port,
                                      "--num_workers", "1"], port, env=allowed), port

    def load(self, port, *more, path="/v1/chat/completions"):
        words = [self.a.refload, "--to", f"127.0.0.1:{port}", "--path", path, *more]
        process = pinned(LOAD_CPU, words, stdout=subprocess.PIPE, text=True)
        self.running.append(process)
        said = process.communicate()[0]
        self.running.remove(process)
        return json.loads(said)

    def per_cpu_second(self, process, port, *more):
        """Streams per second of the proxy's own CPU time."""
        before = cpu_seconds(process.pid)
        seen = self.load(port, "--seconds", SECONDS, "--connections", CONNECTIONS, *more)
        if seen["errors"]:
            raise SystemExit(f"{seen['errors']} errors: {seen}")
        return seen["requests"] / (cpu_seconds(process.pid) - before)

    def paced(self, port):
        """Times to the first byte and to the last of paced streams: medians and p99, milliseconds."""
        seen = self.load(port, "--model", PACED_MODEL, "--seconds", SECONDS, "--connections", CONNECTIONS, "--every-ms", PACED_EVERY_MS)
        if seen["errors"]:
            raise SystemExit(f"{seen['errors']} errors: {seen}")
        return [seen[name] / 1e3 for name in ("first_p50_us", "first_p99_us", "last_p50_us", "last_p99_us")]


class Table:
    """Rows of the table: printed as they come, and kept for the document."""

    def __init__(self):
        self.rows = []
        self.good = True

    def row(self, name, value, spread, bar, right, yardstick):
        mark = {True: "ok", False: "SHORT", None: "--"}[right]
        print(f"{mark:<6} {name:<52} {value:<28} {spread:<24} bar: {bar or '--':<20} {yardstick}", flush=True)
        self.rows.append((name, value, spread, bar, {True: "yes", False: "no", None: ""}[right], yardstick))
        self.good &= right is not False

    def markdown(self, about):
        head = ["figure", f"median of {ROUNDS} rounds", "least to largest", "bar", "holds", "yardstick in the same rounds"]
        lines = [head, ["---"] * len(head), *self.rows]
        return about + "\n\n" + "".join("| " + " | ".join(line) + " |\n" for line in lines)


def spread(values, digits=2):
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def rates(bench, table, yard, subjects, *more):
    """A row for each subject: streams per CPU-second, against nginx in the same rounds. Returns the medians of the rates."""
    everybody = [yard, *subjects]
    for _, (process, port), _, own in everybody:
        bench.load(port, "--seconds", 1, *more, *own)
    seen = {name: [] for name, *_ in everybody}
    for _ in range(ROUNDS):
        for name, (process, port), _, own in everybody:
            seen[name].append(bench.per_cpu_second(process, port, *more, *own))
    ofyard = statistics.median(seen[yard[0]])
    for name, _, bar, _ in subjects:
        ratios = [mine / its for mine, its in zip(seen[name], seen[yard[0]])]
        ratio, rate = statistics.median(ratios), statistics.median(seen[name])
        table.row(f"streams per CPU-second, {name}", f"{rate:,.0f} = {ratio:.2f} of nginx", spread(ratios),
                  f">= {bar}" if bar else "", ratio >= bar if bar else None, f"nginx {ofyard:,.0f}")
    return ofyard, [statistics.median(seen[name]) for name, *_ in subjects]


def added_latency(bench, table, through, nginx):
    """Rows of what is added to paced streams, against no proxy at all right before and right after."""
    mine, its = [], []
    before = bench.paced(bench.upstream)
    for _ in range(ROUNDS):
        by_us, by_nginx, after = bench.paced(through), bench.paced(nginx), bench.paced(bench.upstream)
        base = [min(two) for two in zip(before, after)]
        mine.append([a - b for a, b in zip(by_us, base)])
        its.append([a - b for a, b in zip(by_nginx, base)])
        before = after
    for name, p50, p99 in (("last", 2, 3), ("first", 0, 1)):
        ours, theirs = ([[one[at] for one in rounds] for at in (p50, p99)] for rounds in (mine, its))
        median, tail = map(statistics.median, ours)
        nginx_median, nginx_tail = map(statistics.median, theirs)
        table.row(f"added latency to the {name} byte, {CONNECTIONS} streams at once, p50 / p99", f"{median:.2f} / {tail:.2f} ms",
                  " / ".join(map(spread, ours)), "<= 0.15 / 1.5 ms", median <= 0.15 and tail <= 1.5,
                  f"nginx adds {nginx_median:.2f} / {nginx_tail:.2f} ms")


def idle_memory(bench, table, wanted):
    proxy, port = bench.peaklane()
    hold = pinned(LOAD_CPU, [bench.a.refload, "--to", f"127.0.0.1:{port}", "--hold", wanted, "--model", IDLE_MODEL],
                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    bench.running.append(hold)
    held = json.loads(hold.stdout.readline())["held"]
    time.sleep(1)
    used = rss_mib(proxy.pid)
    table.row(f"resident memory, {held:,} idle streams", f"{used:.0f} MiB = {used * 1024 / max(held, 1):.1f} KiB a stream", "one run",
              "<= 360 MiB", used <= 360 and held >= wanted, "")
    for process in (hold, proxy):
        end(process)
        bench.running.remove(process)


def about(arguments):
    """Where and with what it was measured."""
    def first(words):
        out = subprocess.run(words, capture_output=True, text=True)
        return (out.stdout + out.stderr).strip().splitlines()[0].split()[-1].removeprefix("nginx/")

    versions = [f"peaklane {first([arguments.peaklane, '--version'])}", f"nginx {first(['nginx', '-v'])}"]
    if arguments.litellm:
        python = pathlib.Path(arguments.litellm).with_name("python")
        asked = "import importlib.metadata as m; print(m.version('litellm'))"
        versions.append(f"LiteLLM {first([python, '-c', asked])}")
    model = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    cpu = model.group(1).strip() if model else platform.machine()
    return (f"Measured {time.strftime('%Y-%m-%d')} on {os.cpu_count()} cores of {cpu}, Linux {platform.release().split('-')[0]}; "
            f"{', '.join(versions)}; load average {os.getloadavg()[0]:.1f} at the begin"
            + ("; latency with real-time priority for all, because the machine was not quiet." if arguments.realtime else "."))


def put_into(path, table):
    text = path.read_text()
    before, rest = text.split(BEGIN)
    path.write_text(before + BEGIN + table + END + rest.split(END)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("peaklane", "refserver", "refload"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--litellm", help="program of LiteLLM's proxy, where it is installed")
    parser.add_argument("--idle", type=int, default=9000, help="streams to hold open")
    parser.add_argument("--realtime", action="store_true",
                        help="latency with real-time priority for everybody (root), where the machine cannot be made quiet")
    parser.add_argument("--docs", type=pathlib.Path, help="document whose table is replaced, such as docs/benchmarks.md")
    arguments = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    begun = about(arguments)
    bench, table = Bench(arguments), Table()
    try:
        nginx, off, on = bench.nginx(), bench.peaklane("--no-prefix"), bench.peaklane()
        own = ["--sessions"]
        rates(bench, table, ("nginx", nginx, None, []),
              [("100 KB prompt, figures off", off, 0.5, own), ("100 KB prompt, figures on", on, 0.35, own)],
              "--body-bytes", BODY, "--model", STREAM_MODEL)
        yard, (mine,) = rates(bench, table, ("nginx", nginx, None, []), [("200 B prompt, figures on", on, None, own)],
                              "--model", STREAM_MODEL)
        if arguments.realtime:
            # CPU time is CPU time on a busy machine too; latency is not.
            for process in bench.running:
                for one in family(process.pid):
                    subprocess.run([*ROUND_ROBIN, "--all-tasks", "--pid", LEVEL, str(one)], check=True)
            PRIORITY.extend([*ROUND_ROBIN, LEVEL])
        added_latency(bench, table, on[1], nginx[1])
        PRIORITY.clear()
        bench.stop(off[0])
        bench.stop(on[0])
        idle_memory(bench, table, arguments.idle)
        if arguments.litellm:
            lite, port = bench.litellm()
            bench.load(port, "--seconds", 1, "--model", STREAM_MODEL)
            rate = bench.per_cpu_second(lite, port, "--model", STREAM_MODEL)
            table.row("streams per CPU-second, 200 B prompt, LiteLLM's proxy", f"{rate:,.0f} = {rate / yard:.4f} of nginx", "one run", "",
                      None, f"nginx {yard:,.0f}, peaklane {mine:,.0f}")
    finally:
        bench.close()
    if arguments.docs:
        put_into(arguments.docs, table.markdown(begun))
    return 0 if table.good else 1


if __name__ == "__main__":
    sys.exit(main())
