"""The arithmetic of the benchmark against values worked out by hand."""

import unittest

from timing import Joined, nearest_rank, size_quantiles, spread_ms, true_chunk_ns, true_ttft_ns


def row(number, ttft_us):
    return {"burst_id": "b1", "attempt": str(number), "try_ttft_us": ttft_us, "intended_unix_us": "5000", "ttft_us": ttft_us}


def record(request_id, body_ms, first_ms, read_ms=0.0):
    return {"x_request_id": request_id, "body_ns": int(body_ms * 1e6), "first_chunk_ns": int(first_ms * 1e6),
            "first_read_ns": int(read_ms * 1e6)}


class Quantiles(unittest.TestCase):
    def test_p90_of_eight_is_the_largest(self):
        self.assertEqual(nearest_rank([3, 1, 2, 8, 7, 6, 5, 4], 90), 8)

    def test_p50_of_eight_is_the_fourth_and_p99_of_a_hundred_the_ninety_ninth(self):
        self.assertEqual(nearest_rank(range(1, 9), 50), 4)
        self.assertEqual(nearest_rank(range(1, 101), 99), 99)

    def test_nothing_measured_is_an_error_and_never_zero(self):
        with self.assertRaises(ValueError):
            nearest_rank([], 50)


class Joining(unittest.TestCase):
    def test_the_error_is_the_clients_figure_minus_the_servers(self):
        rows = [row(0, "100500"), row(1, "99000")]
        records = [record("b1-1", 20, 120, 2), record("b1-0", 10, 110, 1)]
        joined = Joined(rows, records)
        self.assertEqual([round(e, 6) for e in joined.errors_ms], [0.5, -1.0])
        self.assertEqual(size_quantiles([0.5, -1.0]), (0.5, 1.0, 1.0))
        self.assertEqual((joined.unmatched_rows, joined.unmatched_records), (0, 0))

    def test_delivery_is_from_the_write_to_the_moment_seen_on_one_clock(self):
        # Intended at 5 ms of Unix time, the first token 100.5 ms later; that clock is 7 ms behind the monotonic one.
        joined = Joined([row(0, "100500")], [record("b1-0", 12, 112)], 7_000_000)
        self.assertEqual([round(d, 6) for d in joined.delivery_ms], [0.5])

    def test_what_has_no_partner_is_counted_and_not_dropped_in_silence(self):
        rows = [row(0, "1000"), row(7, "1000"), row(1, "")]
        records = [record("b1-0", 10, 11), record("other", 10, 11), record("b1-1", 10, 11)]
        joined = Joined(rows, records)
        self.assertEqual((len(joined.errors_ms), joined.unmatched_rows, joined.unmatched_records), (1, 1, 2))

    def test_a_request_without_content_has_no_ttft(self):
        self.assertIsNone(true_ttft_ns({"body_ns": 5, "first_chunk_ns": 0}))
        self.assertIsNone(true_chunk_ns({"body_ns": 5, "chunk_ns": [7]}, 1))
        self.assertEqual(true_chunk_ns({"body_ns": 5, "chunk_ns": [7, 9]}, 1), 4)

    def test_the_spread_is_the_last_minus_the_first(self):
        self.assertEqual(spread_ms([5_000_000, 2_000_000, 3_500_000]), 3.0)


if __name__ == "__main__":
    unittest.main()
