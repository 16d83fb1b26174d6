"""Records as JSON lines, and the summary's numbers."""

import json
import math
from dataclasses import replace

import pytest

from asmdnn.bench.report import Record, geometric_mean, summary

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


def test_summary() -> None:
    slow = replace(TIMED, title="slow", us=1000.0, peer_us=500.0, speedup=0.5, count=1)
    text = summary([TIMED, slow, replace(RECORD, status="skipped")])
    assert text.splitlines() == [
        "2 passed, 1 skipped",
        "speedup over onednn: geometric mean 1.000 of 2, least 0.500 (slow)",
        "time of all, with repetitions: 1.20 ms, peer 0.90 ms",
    ]
    assert summary([]) == "no problems"


def test_geometric_mean() -> None:
    assert geometric_mean([0.5, 2.0, 1.0]) == pytest.approx(1.0)
    assert geometric_mean([4.0, 9.0]) == pytest.approx(6.0)
