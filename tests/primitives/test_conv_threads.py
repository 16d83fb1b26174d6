"""The same bytes for every number of threads, asked for or granted."""

from pathlib import Path

import pytest

import asmdnn as dnn
from asmdnn.runtime.threads import threads_usable
from tests.primitives.conv_case import ConvCase, case_of, proven
from tests.primitives.conv_reference import make_data
from tests.primitives.conv_run import run
from tests.primitives.test_conv_phases import in_ranges
from tests.support.python import python

ROOT = str(Path(__file__).parents[2])
CASES = [
    case_of("mb2ic33ih13iw12oc65oh13ow12kh3kw3ph1pw1  any   any   bias  sum:0.5+relu"),
    case_of("mb1ic33ih13iw12oc65oh7ow6kh3kw3sh2sw2ph1pw1  nchw  nchw  bias  sum+relu"),
    case_of("mb9ic17ih9oc3oh9kh3ph1  nhwc  nhwc  bias  relu"),
    in_ranges("mb1ic80ih12oc40oh12kh3ph1  any  nhwc  bias  sum+relu"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_count_gives_the_same_bytes(isa: str, case: ConvCase) -> None:
    assert threads_usable()
    data = make_data(case, integers=False)
    alone = run(dnn.Primitive(proven(case, isa)), data)
    for threads in (2, 3, 5):
        primitive = dnn.Primitive(proven(case, isa, threads))
        for _ in range(3):
            assert run(primitive, data).tobytes() == alone.tobytes()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_plan_does_not_depend_on_the_count(planned_isa: str, case: ConvCase) -> None:
    one, many = (proven(case, planned_isa, threads).plan for threads in (1, 5))
    assert many.parts(5) == 5, "too small to wake anybody: the tests show nothing"
    assert one.specs == many.specs
    assert all((a.records == b.records).all() for a, b in zip(one.phases, many.phases, strict=True))


GRANTED = """
import sys
from asmdnn.jit.native import ffi
from asmdnn.runtime.threads import openmp
import asmdnn as dnn
from tests.primitives.conv_reference import make_data
from tests.primitives.conv_run import run
from tests.primitives.conv_case import proven
from tests.primitives.test_conv_threads import CASES

isa, how = sys.argv[1:]

def results(threads):
    return [run(dnn.Primitive(proven(case, isa, threads)), make_data(case, False)).tobytes() for case in CASES]

wanted = results(1)
if how == "nested":  # in a parallel region a team has one thread, and here two threads call at once
    teams, found = [], []

    @ffi.callback("void(void *)")
    def body(_):
        teams.append(ffi.cast("int (*)(void)", openmp().num_threads_address)())
        found.append(results(4))

    openmp().parallel(body, ffi.NULL, 2, 0)
    assert teams == [2, 2], teams
    assert found == [wanted, wanted]
else:
    assert results(4) == wanted
print("the same")
"""


@pytest.mark.parametrize(
    "limit",
    [{"OMP_THREAD_LIMIT": "1"}, {"OMP_THREAD_LIMIT": "3"}, {}],
    ids=lambda limit: "".join(limit.values()) or "nested",
)
def test_fewer_threads_than_asked_for(isa: str, limit: dict[str, str]) -> None:
    assert python(GRANTED, isa, "limited" if limit else "nested", **limit) == "the same"
