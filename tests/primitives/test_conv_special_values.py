"""Infinities, NaNs and signed zeros go where the formula sends them, and nowhere else."""

from dataclasses import replace

import numpy as np
import pytest

import asmdnn as dnn
from tests.primitives.conv_case import ConvCase, case_of, proven
from tests.primitives.conv_reference import Data, expected, make_data
from tests.primitives.conv_run import run
from tests.primitives.tensors import assert_within

SHAPE = "mb2ic11ih6iw7oc13oh6ow7kh3kw3ph1pw1"
CHAINS = ("-", "relu", "relu:0.25", "sum+relu", "relu+sum:0.5")
LAYOUTS = ("any any", "nhwc nhwc", "nchw nchw", "nChw16c nChw16c")
CASES = [case_of(f"{SHAPE} {layouts} bias {chain}") for layouts in LAYOUTS for chain in CHAINS]


def wanted(case: ConvCase, data: Data) -> np.ndarray:
    """The formula; where padding multiplies, `elements outside src count as zero` means that nothing is added."""
    with np.errstate(invalid="ignore"):
        return expected(case, data)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_non_finite_input(isa: str, case: ConvCase) -> None:
    data = make_data(case, integers=True)
    data.src[0, 3, 2, 2] = np.nan
    data.src[0, 4, 5, 6] = np.inf  # in a corner, where padding is near
    data.src[1, 10, 0, 0] = -np.inf
    data.weights[data.weights == 0] = 4  # inf * 0 is NaN; that is not the question here
    primitive = dnn.Primitive(proven(case, isa))
    result = run(primitive, data)  # which also demands that the zero padding of dst is zero
    assert np.isnan(result).any()
    assert np.isinf(result).any()
    assert_within(result, wanted(case, data), 0.0)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_non_finite_bias_and_old_dst(isa: str, case: ConvCase) -> None:
    data = make_data(case, integers=True)
    assert data.bias is not None
    data.bias[[2, 12]] = np.nan, -np.inf
    if data.old is not None:
        data.old[1, 5, 2:4, 3] = np.nan, np.inf
    assert_within(run(dnn.Primitive(proven(case, isa)), data), wanted(case, data), 0.0)


@pytest.mark.parametrize("case", CASES[:5], ids=str)
def test_non_finite_weights(isa: str, case: ConvCase) -> None:
    problem = replace(case.problem, axes=tuple(axis._replace(p=0, o=axis.i - 2) for axis in case.problem.axes))
    inside = replace(case, problem=problem)  # no padding, so that every tap of the filter is used everywhere
    data = make_data(inside, integers=True)
    data.weights[[1, 7], 5, 1, 2] = np.nan, np.inf
    assert_within(run(dnn.Primitive(proven(inside, isa)), data), wanted(inside, data), 0.0)


@pytest.mark.parametrize("chain", ["relu", "relu:0.25"])
def test_zero_and_denormals_through_relu(isa: str, chain: str) -> None:
    """Subnormal numbers are computed with if that is asked for, and are zeros by default."""
    case = case_of(f"mb1ic1ih4oc8oh4kh1ph0 nhwc nhwc - {chain}")
    data = make_data(case, integers=True)
    data.src.flat[:4] = 0.0, -0.0, 2.0**-140, -(2.0**-140)
    data.weights[:] = 1
    flushing = proven(case, isa)
    keeping = dnn.primitive_desc(flushing.desc, dnn.Attr(flushing.attr.post_ops, denormals="keep"), flushing.engine)
    kept = run(dnn.Primitive(keeping), data)
    assert_within(kept, expected(case, data), 0.0)
    assert kept[0, :, 0, 2].tolist() == [2.0**-140] * 8
    flushed = run(dnn.Primitive(flushing), data)
    assert not flushed[0, :, 0, 2:4].any()
    assert np.array_equal(flushed[0, :, 1:], kept[0, :, 1:])
