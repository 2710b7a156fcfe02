"""The yardstick: starts the reference server, reads its log of what really happened when.

All times of the log are CLOCK_MONOTONIC nanoseconds of the machine that both sides run on.
"""

import json
import os
import pathlib
import subprocess
import time
import urllib.request


class Reference:
    """A running reference server. Use as a context manager; it is stopped at the end.

    log_chunks: also log when each chunk was written. Without a `log` path nothing is logged (throughput rows: both
    clients then meet the same, faster server).
    """

    def __init__(self, binary, log=None, cpu=None, log_chunks=False, realtime=False, arguments=()):
        command = [str(binary), "--listen", "127.0.0.1:0", *arguments]
        self.log = pathlib.Path(log) if log else None
        if self.log:
            self.log.unlink(missing_ok=True)
            command += ["--log", str(self.log)]
            if log_chunks:
                command += ["--log-chunks"]
        if cpu is not None:
            command = ["taskset", "-c", str(cpu), *command]
        if realtime:
            command = ["chrt", "--fifo", "10", *command]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        line = self._process.stdout.readline()
        if not line.startswith("listening "):
            self.stop()
            raise RuntimeError(f"the reference server did not start: {line!r}")
        self.origin = "http://" + line.split()[1]
        self.base_url = self.origin + "/v1"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def stats(self):
        """Requests begun and finished, connections accepted, requests in flight now."""
        with urllib.request.urlopen(self.origin + "/_ref/stats", timeout=5) as answer:
            return json.load(answer)

    def size(self):
        """Where the log stands now; give it to `records` to read only what comes after."""
        self._settle()
        return self.log.stat().st_size if self.log.exists() else 0

    def records(self, since=0):
        """The log's records after byte `since`, once the server has finished and written all of them."""
        self._settle()
        if not self.log.exists():
            return []
        with self.log.open("rb") as file:
            file.seek(since)
            return [json.loads(line) for line in file if line.strip()]

    def _settle(self):
        # The server writes its log every 50 ms; a request counts as finished when its last byte left.
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            stats = self.stats()
            if stats["in_flight"] == 0 and stats["requests"] == stats["finished"]:
                break
            time.sleep(0.02)
        time.sleep(0.15)


def monotonic_minus_unix_ns():
    """What to add to a Unix time (ns) to get CLOCK_MONOTONIC ns. Best of several readings, so within a few us."""
    best = None
    for _ in range(200):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        unix = time.time_ns()
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        if best is None or after - before < best[0]:
            best = (after - before, (before + after) // 2 - unix)
    return best[1]


def machine_facts():
    """What a figure needs to be compared: cores, CPU model, kernel, date."""
    model = "unknown"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    memory_kib = int(pathlib.Path("/proc/meminfo").read_text().split()[1])
    return {
        "cores": os.cpu_count(),
        "cpu_model": model,
        "memory_gib": round(memory_kib / 1048576),
        "kernel": os.uname().release.split("-")[0],
        "date": time.strftime("%Y-%m-%d"),
    }
