"""The arithmetic of the table: `python3 -m unittest discover benches/peers`."""

import unittest

from measure import MS, Counters, Request, figures, handoffs_ns, most_at_once, overtaken, parse, quantile_ms, until


def request(asked: int, granted: int, released: int) -> Request:
    return Request(asked * MS, granted * MS, released * MS)


class Measure(unittest.TestCase):
    def test_lines_are_three_numbers(self) -> None:
        self.assertEqual(parse(["1 2 3\n", "\n", "4 0 0"]), [Request(1, 2, 3), Request(4, 0, 0)])

    def test_a_handoff_is_from_a_release_to_the_grant_of_that_slot(self) -> None:
        line = [request(0, 1, 10), request(0, 1, 20), request(2, 13, 30), request(3, 21, 40)]
        self.assertEqual(handoffs_ns(line, 2), [3 * MS, 1 * MS])

    def test_a_slot_that_nobody_waits_for_is_no_handoff(self) -> None:
        self.assertEqual(handoffs_ns([request(0, 1, 10), request(50, 51, 60)], 1), [])

    def test_who_asked_later_and_came_first_has_overtaken(self) -> None:
        first, second = request(0, 300, 310), request(100, 200, 210)
        self.assertEqual(overtaken([first, second]), 1)
        self.assertEqual(overtaken([request(0, 200, 210), request(100, 300, 310)]), 0)
        self.assertEqual(overtaken([second, Request(1, 0, 0)]), 1, "who never had a turn was overtaken, too")

    def test_what_is_within_the_blur_is_no_overtaking(self) -> None:
        self.assertEqual(overtaken([request(0, 300, 310), request(9, 200, 210)]), 0)
        self.assertEqual(overtaken([request(0, 209, 310), request(100, 200, 210)]), 0)

    def test_one_that_ends_when_another_begins_is_not_beside_it(self) -> None:
        self.assertEqual(most_at_once([request(0, 1, 5), request(0, 5, 9), request(0, 6, 9)], 9 * MS), 2)
        self.assertEqual(most_at_once([request(0, 1, 0), request(0, 5, 9)], 9 * MS), 2, "the first still has it")

    def test_what_comes_after_the_end_has_not_been(self) -> None:
        requests = [Request(1, 2, 9), Request(2, 9, 10), Request(9, 10, 11)]
        self.assertEqual(until(requests, 5), [Request(1, 2, 0), Request(2, 0, 0)])

    def test_quantiles(self) -> None:
        hundred = [n * MS for n in range(1, 101)]
        self.assertEqual([quantile_ms(hundred, share) for share in (0.5, 0.99, 1)], [50, 99, 100])
        self.assertIsNone(quantile_ms([], 0.5))

    def test_costs_are_shared_by_the_grants(self) -> None:
        used = Counters(10, 60, 80.0, 100.0).since(Counters(2, 20, 40.0, 20.0))
        row = figures([request(0, 500, 600), request(0, 1000, 1100)], 1, 2000 * MS, used)
        self.assertEqual((row.grants, row.grants_per_s, row.scripts_per_grant), (2, 2.0, 4.0))
        cut = figures([request(0, 500, 600), request(0, 0, 0)], 1, 2000 * MS, used)
        self.assertEqual((cut.grants, cut.grants_per_s), (1, 0.5), "until the end, if somebody still waits")
        self.assertEqual((row.script_us_per_grant, row.server_us_per_grant, row.client_us_per_grant), (20.0, 20.0, 40.0))


if __name__ == "__main__":
    unittest.main()
