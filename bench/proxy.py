#!/usr/bin/env python3
"""Measures `peaklane proxy` beside nginx (and LiteLLM's proxy, where it is installed) on the same fast upstream, and prints the
table of docs/benchmarks.md.

    bench/proxy.py --peaklane target/release/peaklane --refserver bench/refserver/target/release/refserver
                   --refload bench/refserver/target/release/refload [--litellm VENV/bin/litellm]

Upstream and load on core 0, the proxy on core 1. Every row has its yardstick from the same run.
"""

import argparse
import json
import os
import pathlib
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
PACED_MODEL = "ref-ttft20-itl2-n20"
IDLE_MODEL = "ref-ttft0-itl600000-n3"
BODY = 100_000
SECONDS = 6
ROUNDS = 3


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


def pinned(cpu, words, **how):
    return subprocess.Popen(["taskset", "-c", cpu, *map(str, words)], **how)


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
        self.running.remove(process)

    def close(self):
        for process in reversed(self.running):
            process.kill()
            process.wait()
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
        words = ["taskset", "-c", LOAD_CPU, self.a.refload, "--to", f"127.0.0.1:{port}", "--path", path, *map(str, more)]
        return json.loads(subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True).stdout)

    def per_cpu_second(self, process, port, *more):
        """Streams per second of the proxy's own CPU time."""
        self.load(port, "--seconds", 1, *more)
        before = cpu_seconds(process.pid)
        seen = self.load(port, "--seconds", SECONDS, *more)
        if seen["errors"]:
            raise SystemExit(f"{seen['errors']} errors: {seen}")
        return seen["requests"] / (cpu_seconds(process.pid) - before)

    def added(self, port):
        """Time to the last byte of paced streams, 64 at once: median and p99, microseconds."""
        seen = self.load(port, "--model", PACED_MODEL, "--seconds", SECONDS, "--every-ms", 80)
        return seen["last_p50_us"], seen["last_p99_us"], seen["requests"], seen["errors"]


def row(name, value, bar, right, yardstick):
    mark = {True: "ok", False: "SHORT", None: "--"}[right]
    print(f"{mark:<6} {name:<46} {value:<44} bar: {bar}   [{yardstick}]", flush=True)
    return right is not False


def median_of(run):
    return statistics.median(run() for _ in range(ROUNDS))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("peaklane", "refserver", "refload"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--litellm", help="program of LiteLLM's proxy, where it is installed")
    parser.add_argument("--idle", type=int, default=9000, help="streams to hold open")
    arguments = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    bench = Bench(arguments)
    good = True
    try:
        body = ["--body-bytes", BODY, "--model", STREAM_MODEL]
        nginx, nginx_port = bench.nginx()
        yard = median_of(lambda: bench.per_cpu_second(nginx, nginx_port, *body))
        off, off_port = bench.peaklane("--no-prefix")
        plain = median_of(lambda: bench.per_cpu_second(off, off_port, *body, "--sessions"))
        on, on_port = bench.peaklane()
        full = median_of(lambda: bench.per_cpu_second(on, on_port, *body, "--sessions"))
        said = f"nginx {yard:,.0f} in the same run"
        good &= row("streams per CPU-second, 100 KB prompt, figures off", f"{plain:,.0f} = {plain / yard:.2f} of nginx", ">= 0.5",
                    plain >= 0.5 * yard, said)
        good &= row("streams per CPU-second, 100 KB prompt, figures on", f"{full:,.0f} = {full / yard:.2f} of nginx", ">= 0.35",
                    full >= 0.35 * yard, said)
        small = ["--model", STREAM_MODEL]
        yard_small = median_of(lambda: bench.per_cpu_second(nginx, nginx_port, *small))
        full_small = median_of(lambda: bench.per_cpu_second(on, on_port, *small, "--sessions"))
        row("streams per CPU-second, 200 B prompt, figures on", f"{full_small:,.0f} = {full_small / yard_small:.2f} of nginx", "--", None,
            f"nginx {yard_small:,.0f}")
        direct = bench.added(bench.upstream)
        through = bench.added(on_port)
        by_nginx = bench.added(nginx_port)
        again = bench.added(bench.upstream)
        base = (min(direct[0], again[0]), min(direct[1], again[1]))
        if through[3] or direct[3]:
            raise SystemExit("errors under paced load")
        more = ((through[0] - base[0]) / 1e3, (through[1] - base[1]) / 1e3)
        nginx_more = ((by_nginx[0] - base[0]) / 1e3, (by_nginx[1] - base[1]) / 1e3)
        good &= row("added latency, 64 paced streams, median / p99", f"{more[0]:.2f} / {more[1]:.2f} ms", "<= 0.15 / 1.5 ms",
                    more[0] <= 0.15 and more[1] <= 1.5, f"nginx adds {nginx_more[0]:.2f} / {nginx_more[1]:.2f} ms")
        bench.stop(off)
        bench.stop(on)
        idle, idle_port = bench.peaklane()
        hold = pinned(LOAD_CPU, [arguments.refload, "--to", f"127.0.0.1:{idle_port}", "--hold", arguments.idle, "--model", IDLE_MODEL],
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        held = json.loads(hold.stdout.readline())["held"]
        time.sleep(1)
        used = rss_mib(idle.pid)
        hold.stdin.close()
        hold.wait()
        good &= row(f"resident memory, {held:,} idle streams", f"{used:.0f} MiB = {used * 1024 / max(held, 1):.1f} KiB a stream", "<= 360 MiB",
                    used <= 360 and held >= arguments.idle, f"asked for {arguments.idle:,}")
        idle.kill()
        if arguments.litellm:
            lite, lite_port = bench.litellm()
            lite_cpu = bench.per_cpu_second(lite, lite_port, *small)
            row("LiteLLM's proxy, streams per CPU-second, 200 B", f"{lite_cpu:,.0f} = {lite_cpu / yard_small:.4f} of nginx", "--", None,
                f"peaklane {full_small:,.0f}")
    finally:
        bench.close()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
