"""Records as JSON lines and table rows."""

import json
import math
from dataclasses import replace

import pytest

from asmdnn.bench.drivers import driver_of
from asmdnn.bench.report import Record, header, row

RECORD = Record("mb1ic3ih8oc4oh6kh3ph0", "net:conv", 2, "--conv mb1ic3ih8oc4oh6kh3ph0", "conv", "net:conv")
TIMED = replace(RECORD, status="passed", ok=True, us=100.0, peer="onednn", peer_us=200.0, speedup=2.0)
DESIGN_FIELDS = (
    "driver problem name impl isa threads ok max_error us gflops bandwidth_gbs peak_fraction "
    "peer peer_impl peer_us speedup"
)


def test_json_line() -> None:
    record = replace(TIMED, error_ratio=math.inf, max_error=math.nan)
    line = record.to_json()
    assert "\n" not in line
    fields = json.loads(line, parse_constant=pytest.fail)  # NaN and Infinity are no JSON
    assert set(DESIGN_FIELDS.split()) <= set(fields)
    assert (fields["driver"], fields["us"], fields["gflops"], fields["error_ratio"]) == ("conv", 100.0, None, "inf")


def test_rows_line_up_with_the_header() -> None:
    long = replace(TIMED, title="n" * 99)
    copied = replace(TIMED, driver="shuffle", bandwidth_gbs=12.25, copy_us=90.0, copy_fraction=0.9)
    ends = {
        text.rindex("  ")
        for text in (header(driver_of("conv")), row(TIMED), row(long), row(copied), header(driver_of("shuffle")))
    }
    assert " 12.2     90 " in row(copied)
    assert row(TIMED).startswith("net:conv ")
    assert row(replace(RECORD, status="skipped", reason="why")).endswith("skipped: why")
    assert row(long).startswith("n" * 39 + "... ")
    assert len(ends) == 1


def test_a_failure_says_how_to_repeat_it() -> None:
    text = row(replace(RECORD, status="failed", ok=False, reason="wrong"))
    assert text.splitlines()[0].endswith("failed: wrong")
    assert text.splitlines()[1].strip() == f"asmdnn bench {RECORD.args}"
