"""The clients under test: runs a command on one core and says what it took.

Resident memory is read from /proc while the command runs (VmHWM belongs to the program itself; `ru_maxrss` of a child
starts at the size of the process that started it, so it would report the size of this script).
"""

import os
import pathlib
import subprocess
import threading
import time

CLIENT_ENV_DROPPED = ("LLM_BASE_URL", "LLM_MODEL", "LLM_API_KEY", "LLM_API", "http_proxy", "https_proxy", "HTTP_PROXY",
                      "HTTPS_PROXY", "all_proxy", "ALL_PROXY")


class Run:
    """One finished command: exit code, output, wall and CPU seconds, resident memory over time."""

    def __init__(self, code, stdout, stderr, wall_s, user_s, system_s, peak_kib, resident_kib):
        self.code, self.stdout, self.stderr = code, stdout, stderr
        self.wall_s, self.user_s, self.system_s = wall_s, user_s, system_s
        #: largest VmHWM seen, KiB
        self.peak_kib = peak_kib
        #: (seconds since start, VmRSS in KiB), in order
        self.resident_kib = resident_kib

    @property
    def cpu_s(self):
        return self.user_s + self.system_s


def run(command, cpu=None, cwd=None, timeout=600, sample_s=0.02, memory=True, realtime=False):
    """Runs `command` to its end on core `cpu`. Output goes through files, so that a full pipe never stops the client."""
    if cpu is not None:
        command = ["taskset", "-c", str(cpu), *command]
    if realtime:
        command = ["chrt", "--fifo", "10", *command]
    environment = {k: v for k, v in os.environ.items() if k not in CLIENT_ENV_DROPPED}
    scratch = pathlib.Path(cwd or ".")
    out_path, err_path = scratch / ".stdout", scratch / ".stderr"
    with out_path.open("wb") as out, err_path.open("wb") as err:
        begun = time.perf_counter()
        process = subprocess.Popen([str(c) for c in command], cwd=cwd, env=environment, stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=err)
        sampler = _Sampler(process.pid, begun, sample_s)
        if memory:
            sampler.start()
        killer = threading.Timer(timeout, process.kill)
        killer.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begun
        killer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        sampler.over = True
        if memory:
            sampler.join()
    stdout, stderr = out_path.read_text(errors="replace"), err_path.read_text(errors="replace")
    out_path.unlink()
    err_path.unlink()
    return Run(process.returncode, stdout, stderr, wall, usage.ru_utime, usage.ru_stime, sampler.peak_kib,
               sampler.resident_kib)


class _Sampler(threading.Thread):
    def __init__(self, pid, begun, every_s):
        super().__init__(daemon=True)
        self.pid, self.begun, self.every_s = pid, begun, every_s
        self.over = False
        self.peak_kib, self.resident_kib = 0, []

    def run(self):
        path = f"/proc/{self.pid}/status"
        while not self.over:
            try:
                with open(path) as file:
                    fields = dict(line.split(":", 1) for line in file if line.startswith(("VmHWM", "VmRSS", "Name")))
            except OSError:
                return
            # Until `chrt` and `taskset` have become the client, the figures are not the client's.
            if "VmRSS" in fields and fields["Name"].strip() not in ("chrt", "taskset", "python3"):
                self.peak_kib = max(self.peak_kib, int(fields["VmHWM"].split()[0]))
                self.resident_kib.append((time.perf_counter() - self.begun, int(fields["VmRSS"].split()[0])))
            time.sleep(self.every_s)


def start_times_s(command, cpu, runs):
    """Wall seconds of each of `runs` short runs of `command`, sorted. Spawning is included, so compare with `true`."""
    # `taskset` costs a start of its own, so this process moves itself instead and its children stay there.
    before = os.sched_getaffinity(0)
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})
    try:
        times = []
        null = os.open(os.devnull, os.O_RDWR)
        actions = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)]
        for _ in range(runs):
            begun = time.perf_counter()
            pid = os.posix_spawn(str(command[0]), [str(c) for c in command], os.environ, file_actions=actions)
            os.waitpid(pid, 0)
            times.append(time.perf_counter() - begun)
        os.close(null)
        return sorted(times)
    finally:
        os.sched_setaffinity(0, before)
