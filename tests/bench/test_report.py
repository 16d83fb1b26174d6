"""Records as JSON lines."""

import json
import math
from dataclasses import replace

import pytest

from asmdnn.bench.report import Record

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
