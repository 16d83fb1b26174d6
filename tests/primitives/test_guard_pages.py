"""Every tensor ends, then starts, at an unmapped page, and inputs cannot be written: whole plans, on every layout."""

import numpy as np
import pytest

import asmdnn as dnn
from tests.primitives.conv_case import ConvCase, cases_of_file, layout, proven
from tests.primitives.conv_reference import Data, expected, make_data
from tests.primitives.guarded import GuardedBuffer, check_at_pages, guarded_tensors, in_child
from tests.primitives.tensors import assert_within, filling, read
from tests.primitives.test_conv_phases import SPLIT
from tests.primitives.test_reorder import FORMATS, reorder_desc


def run_guarded(
    primitive: dnn.Primitive, values: dict[str, np.ndarray], wanted: np.ndarray, at_end: bool, tolerance: float = 0.0
) -> None:
    memories = guarded_tensors(primitive.pd.plan, at_end, filling(values))
    primitive.execute(**memories)
    assert_within(read(memories["dst"]), wanted, tolerance)


@pytest.mark.parametrize("case", cases_of_file() + SPLIT, ids=str)
@pytest.mark.one_in(3)
def test_convolution(isa: str, case: ConvCase) -> None:
    data: Data = make_data(case, integers=True)
    primitive, wanted = dnn.Primitive(proven(case, isa)), expected(case, data)
    check_at_pages(lambda at_end: run_guarded(primitive, data.arrays(), wanted, at_end))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("dst", FORMATS)
@pytest.mark.one_in(3)
def test_reorder(dst: str) -> None:
    dims = (5, 17, 3, 9)
    values = np.arange(1, 1 + np.prod(dims), dtype=np.float32).reshape(dims)
    pds = [dnn.primitive_desc(reorder_desc(dims, src, dst), engine=dnn.Engine(threads=1)) for src in FORMATS]
    for pd in pds:
        pd.plan.check()
    primitives = [dnn.Primitive(pd) for pd in pds]

    def run_all(some: list[dnn.Primitive]) -> None:
        for primitive in some:
            for at_end in (True, False):
                run_guarded(primitive, {"src": values}, values, at_end)

    if in_child(lambda: run_all(primitives)):  # which of them?
        failures = {src: in_child(lambda one=one: run_all([one])) for src, one in zip(FORMATS, primitives, strict=True)}
        raise AssertionError({f"{src} to {dst}": failure for src, failure in failures.items() if failure})


def test_the_guards_work() -> None:
    """A read past either side, and a write to what is read-only, kill the child."""
    desc = layout((3, 5, 2, 2), "nhwc")
    for at_end, past in ((True, desc.size_bytes), (False, -1)):
        buffer = GuardedBuffer(desc.size_bytes, at_end)
        assert in_child(lambda b=buffer, past=past: peek(b.array.ctypes.data + past)) == "killed by SIGSEGV"
        buffer.make_read_only()
        assert in_child(lambda b=buffer: b.array.fill(1)) == "killed by SIGSEGV"
        assert in_child(lambda b=buffer: peek(b.array.ctypes.data)) == ""
    assert "ZeroDivisionError" in in_child(lambda: 1 / 0)


def peek(address: int) -> None:
    from asmdnn.jit.native import ffi

    ffi.cast("char *", address)[0]
