"""The end of a bench run: counts in benchdnn's shape, means and totals, failures, in bounded memory."""

from dataclasses import replace

from asmdnn.bench.report import Record, unread
from asmdnn.bench.tally import SHOWN_FAILURES, Tally

RECORD = Record("mb1ic3ih8oc4oh6kh3ph0", "net:conv", 2, "--conv mb1ic3ih8oc4oh6kh3ph0", "conv", "net:conv")
TIMED = replace(RECORD, status="passed", ok=True, us=100.0, peer="onednn", peer_us=200.0, speedup=2.0, low_speedup=3.0)
COUNTS = "tests:{} passed:{} skipped:{} mistrusted:0 unimplemented:{} invalid_arguments:{} failed:{} listed:{}"


def tally_of(*records: Record) -> Tally:
    tally = Tally()
    for record in records:
        tally.add(record)
    return tally


def test_counts_and_times() -> None:
    slow = replace(TIMED, title="slow", us=1000.0, peer_us=500.0, speedup=0.5, low_speedup=0.75, count=1)
    assert tally_of(TIMED, slow, replace(RECORD, status="skipped")).text().splitlines() == [
        "speedup over onednn: geometric mean 1.000 of 2, at the 10th percentile 1.500, least 0.500 (slow)",
        "time of all, with repetitions: 1.20 ms, peer 0.90 ms",
        COUNTS.format(3, 2, 1, 0, 0, 0, 0),
    ]


def test_a_total_of_the_peer_needs_all_of_its_times() -> None:
    tally = tally_of(TIMED, replace(TIMED, peer_us=None, speedup=None))
    assert "time of all, with repetitions: 0.40 ms" in tally.text().splitlines()
    assert tally_of(replace(RECORD, status="passed")).text() == COUNTS.format(1, 1, 0, 0, 0, 0, 0)


def test_statuses_that_benchdnn_counts_as_passed_come_last() -> None:
    tally = tally_of(*(replace(RECORD, status=status) for status in ("initialized", "timed", "executed")))
    assert tally.text() == COUNTS.format(3, 0, 0, 0, 0, 0, 0) + " timed:1 executed:1 initialized:1"


def test_what_makes_a_run_fail() -> None:
    fine = (TIMED, RECORD, replace(RECORD, status="skipped"), replace(RECORD, status="unimplemented"))
    assert not tally_of(*fine, unread("file:1", "a problem after a mistake", is_skipped=True)).has_failed
    assert tally_of(unread("file:1", "--x=1: no such option", is_skipped=False)).has_failed
    assert tally_of(replace(RECORD, status="unimplemented", ok=False)).has_failed
    assert tally_of(replace(RECORD, status="failed", ok=False)).has_failed


def test_the_first_failures_are_listed_where_they_may_be_out_of_sight() -> None:
    wrong = replace(RECORD, status="failed", ok=False, reason="wrong")
    few = tally_of(wrong, unread("file:3", "--x=1: no such option", is_skipped=False))
    assert few.text() == COUNTS.format(2, 0, 0, 0, 1, 1, 0)
    many = tally_of(*[wrong] * 12, *[TIMED] * 3)
    lines = many.text().splitlines()
    assert lines[0] == "failures:"
    assert lines[1 : 1 + SHOWN_FAILURES] == [f"  failed: {RECORD.args}: wrong"] * SHOWN_FAILURES
    assert lines[1 + SHOWN_FAILURES] == "  and 2 more"
    assert many.text(failures=False).splitlines()[0].startswith("speedup over")


def test_a_list_alone_has_no_end() -> None:
    assert tally_of(RECORD).is_list
    assert not tally_of(RECORD, TIMED).is_list
