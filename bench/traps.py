#!/usr/bin/env python3
"""Twelve traps that load clients fall into, judged against the reference server's own log.

    bench/traps.py --peaklane target/release/peaklane --refserver bench/refserver/target/release/refserver

Each trap is one request by `peaklane try --format json`. Right means: the class, TTFT *and* time to first answer, and
whatever else the trap is about. The traps are built so that a wrong answer is 200 ms or more away from the right one,
and judged with 100 ms to spare: this is a test of correctness that a busy machine passes too. Exit code 1 on a miss.
"""

import argparse
import json
import pathlib
import sys
import tempfile

import reference
import subject
from timing import true_chunk_ns, true_ttft_ns

TOLERANCE_MS = 100.0
EARLY_MS = 5.0


class Trap:
    """One request and what is right about its record.

    model: the reference server's plan. outcomes: classes that are right, the plainest first. first_answer_chunk: which
    content chunk is the first that is no reasoning; None: there is none. content: whether there is any content at all.
    fields: values that the record must hold besides.
    """

    def __init__(self, name, model, outcomes=("ok",), content=True, first_answer_chunk=0, fields=None):
        self.name, self.model, self.outcomes = name, model, outcomes
        self.content, self.first_answer_chunk, self.fields = content, first_answer_chunk, fields or {}


# A cut or a reset in the middle may be told as either: both say that the answer is not whole and may be tried again.
CUT, RESET = ("truncated", "conn_reset"), ("conn_reset", "truncated")

TRAPS = [
    # An empty role chunk at once, the first token 300 ms later: the role is no token.
    Trap("role", "ref-ttft300-itl10-n20-role0", fields={"output_chunks": 20}),
    # A comment at once (a keep-alive), the first token 300 ms later.
    Trap("comment", "ref-ttft300-itl10-n20-cmt0", fields={"output_chunks": 20}),
    # Ten chunks of reasoning 40 ms apart: TTFT at the first of them, first answer 400 ms later.
    Trap("reasoning", "ref-ttft300-itl40-n20-reason10", first_answer_chunk=10,
         fields={"output_chunks": 10, "reasoning_chunks": 10, "content": " tok" * 10, "reasoning": " tok" * 10}),
    # Four tokens in each chunk: tokens come from `usage`, never from counting chunks.
    Trap("several tokens a chunk", "ref-ttft300-itl20-n20-mt4",
         fields={"output_chunks": 20, "usage.completion": 80, "content": " tok" * 80}),
    Trap("429", "ref-s429r2", ("rate_limited",), content=False, first_answer_chunk=None,
         fields={"retry_after_ms": 2000, "retryable": True, "retries": 0}),
    Trap("500", "ref-s500", ("server_error",), content=False, first_answer_chunk=None, fields={"retryable": True}),
    Trap("disconnect", "ref-ttft300-itl40-n20-disc5", CUT, fields={"retryable": True, "output_chunks": 5}),
    Trap("reset", "ref-ttft300-itl40-n20-rst5", RESET, fields={"retryable": True}),
    Trap("error in a 200", "ref-ttft300-itl40-n20-mide5", ("server_error",),
         fields={"in_band": True, "output_chunks": 5}),
    Trap("broken JSON", "ref-ttft300-itl40-n20-garb5", ("bad_body",)),
    # All 20 chunks and a clean end of the body, but neither a finish reason nor [DONE].
    Trap("truncation", "ref-ttft300-itl10-n20-trunc", ("truncated",),
         fields={"finish_reason": None, "output_chunks": 20, "retryable": True}),
    # A well-formed end (finish reason, usage, [DONE]) after which nothing was said.
    Trap("empty answer", "ref-ttft300-n0-role0", ("no_answer",), content=False, first_answer_chunk=None,
         fields={"finish_reason": "stop", "output_chunks": 0}),
]


def look_up(answer, path):
    """`usage.completion` -> answer["usage"]["completion"]."""
    for key in path.split("."):
        answer = answer[key]
    return answer


def judge(trap, answer, record):
    """What is wrong with the client's record; an empty list is a pass. Also gives the two timing errors in ms."""
    wrong, errors = [], {}
    if answer.get("outcome") not in trap.outcomes:
        wrong.append(f"outcome is {answer.get('outcome')}, not {trap.outcomes[0]}")
    truths = {
        "ttft_at_ms": true_ttft_ns(record) if trap.content else None,
        "first_answer_at_ms": None if trap.first_answer_chunk is None else true_chunk_ns(record, trap.first_answer_chunk),
    }
    for key, truth in truths.items():
        told = answer.get(key, "missing")
        if truth is None or not isinstance(told, (int, float)):
            if told is not None or truth is not None:
                wrong.append(f"{key} is {told}, not {None if truth is None else round(truth / 1e6, 3)}")
            continue
        errors[key] = told - truth / 1e6
        if not -EARLY_MS <= errors[key] <= TOLERANCE_MS:
            wrong.append(f"{key} is {told}, {errors[key]:+.1f} ms off the server's {truth / 1e6:.1f}")
    for path, want in trap.fields.items():
        try:
            told = look_up(answer, path)
        except (KeyError, TypeError):
            told = "missing"
        if told != want:
            wrong.append(f"{path} is {told!r}, not {want!r}")
    return wrong, errors


def run_traps(peaklane, refserver, folder, client_cpu=None, server_cpu=None):
    """Runs all traps; gives a list of (trap, what is wrong, errors)."""
    results = []
    log = pathlib.Path(folder) / "traps.jsonl"
    with reference.Reference(refserver, log, cpu=server_cpu, log_chunks=True) as server:
        for trap in TRAPS:
            since = server.size()
            command = [peaklane, "try", "--base-url", server.base_url, "--model", trap.model, "--format", "json"]
            done = subject.run(command, cpu=client_cpu, cwd=folder, timeout=60, memory=False)
            records = server.records(since)
            if len(records) != 1:
                results.append((trap, [f"{len(records)} requests arrived, not 1"], {}))
                continue
            try:
                answer = json.loads(done.stdout)
            except ValueError:
                results.append((trap, [f"no JSON on stdout (exit {done.code}): {done.stderr.strip()[:300]}"], {}))
                continue
            results.append((trap, *judge(trap, answer, records[0])))
    return results


def main():
    parser = argparse.ArgumentParser(description="Twelve traps for load clients, judged by the server's log.")
    parser.add_argument("--peaklane", required=True, help="the client")
    parser.add_argument("--refserver", required=True, help="the reference server")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = run_traps(pathlib.Path(arguments.peaklane).resolve(), pathlib.Path(arguments.refserver).resolve(), folder)
    for trap, wrong, errors in results:
        told = ", ".join(f"{key.removesuffix('_at_ms')} {error:+.2f} ms" for key, error in errors.items())
        print(f"{'ok  ' if not wrong else 'MISS'}  {trap.name:<24} {trap.model:<34} {told}")
        for line in wrong:
            print(f"      {line}")
    passed = sum(not wrong for _, wrong, _ in results)
    print(f"traps: {passed} passed, {len(TRAPS) - passed} failed")
    return 0 if passed == len(TRAPS) == 12 else 1


if __name__ == "__main__":
    sys.exit(main())
