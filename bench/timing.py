"""Arithmetic of the benchmark, without I/O: quantiles, and the client's figures joined with the server's log."""

import csv


def nearest_rank(values, percent):
    """Smallest value with at least `percent` % of all values at or below it; exact integer rank. No values is an error."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no samples")
    if not 1 <= percent <= 100:
        raise ValueError(f"{percent} is no percentage from 1 to 100")
    rank = -(-percent * len(ordered) // 100)
    return ordered[rank - 1]


def true_ttft_ns(record):
    """From the read that completed the request to the write of the first content, by the server's clock; None if never."""
    if not record["first_chunk_ns"]:
        return None
    return record["first_chunk_ns"] - record["body_ns"]


def true_chunk_ns(record, index):
    """The same for content chunk `index` (needs --log-chunks); None if it was never written."""
    chunks = record.get("chunk_ns", [])
    return chunks[index] - record["body_ns"] if index < len(chunks) else None


def read_rows(path):
    """The client's CSV: one row per attempt, as dictionaries of texts."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def id_of(row):
    """The `x-request-id` that the client sent with this attempt: burst and number."""
    return f"{row['burst_id']}-{row['attempt']}"


def told_ttft_ms(row):
    """The client's TTFT from the last byte of the request sent, ms; None when it saw no token."""
    return float(row["try_ttft_us"]) / 1e3 if row["try_ttft_us"] else None


class Joined:
    """The client's attempts matched with the server's records by the request id that was sent.

    errors_ms: client TTFT minus true TTFT, one for each matched attempt, in order of arrival at the server.
    delivery_ms: from the server's write of the first token to the moment at which the client saw it: the client's own part.
    unmatched_rows, unmatched_records: what has no partner; anything but 0 means that the figures cannot be trusted.
    """

    def __init__(self, rows, records, monotonic_minus_unix_ns=0):
        by_id = {id_of(row): row for row in rows}
        self.unmatched_rows = len(rows) - len(by_id)
        self.unmatched_records = 0
        self.errors_ms, self.delivery_ms = [], []
        for record in sorted(records, key=lambda r: r["first_read_ns"]):
            row = by_id.pop(record.get("x_request_id", ""), None)
            truth, told = true_ttft_ns(record), told_ttft_ms(row) if row else None
            if truth is None or told is None:
                self.unmatched_records += 1
                continue
            self.errors_ms.append(told - truth / 1e6)
            seen_ns = (int(row["intended_unix_us"]) + int(row["ttft_us"])) * 1000 + monotonic_minus_unix_ns
            self.delivery_ms.append((seen_ns - record["first_chunk_ns"]) / 1e6)
        self.unmatched_rows += len(by_id)

def size_quantiles(values):
    """p50, p99 and largest of the values without their signs."""
    sizes = [abs(value) for value in values]
    return nearest_rank(sizes, 50), nearest_rank(sizes, 99), max(sizes)


def spread_ms(values_ns):
    """Latest minus earliest, in ms."""
    return (max(values_ns) - min(values_ns)) / 1e6
