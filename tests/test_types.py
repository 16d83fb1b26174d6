"""The Literal types of signatures are the registries, and what the API exports is what type checkers see."""

from typing import get_args

import pytest

from asmdnn import types
from asmdnn.generators.functions.eltwise.algorithms import ALGORITHMS
from asmdnn.generators.functions.postops import BINARY
from asmdnn.isa.levels import LEVELS
from asmdnn.memory.desc import MemoryDesc
from asmdnn.memory.tags import _LOGICAL_ORDERS
from asmdnn.primitives.attributes.attr import ACCUMULATION_MODES, FPMATH_MODES, SCRATCHPAD_MODES
from asmdnn.primitives.attributes.numbers import OLDER_ALGORITHMS
from asmdnn.primitives.elementwise.eltwise import BACKWARD_ALGS

CONVOLUTION = "convolution_"
TAGS = get_args(types.UsualTag)


@pytest.mark.parametrize(
    ("literal", "registry"),
    [
        (types.IsaName, [level.name for level in LEVELS]),
        (types.EltwiseAlgorithm, [*ALGORITHMS, *OLDER_ALGORITHMS]),
        (types.EltwiseBackwardAlgorithm, [*BACKWARD_ALGS, *OLDER_ALGORITHMS]),
        (types.BinaryAlgorithm, BINARY),
        (types.ConvolutionAlgorithm, [kind.value.removeprefix(CONVOLUTION) for kind in types.Algorithm
                                      if kind.value.startswith(CONVOLUTION)]),
        (types.ScratchpadMode, SCRATCHPAD_MODES),
        (types.FpMathMode, FPMATH_MODES),
        (types.AccumulationMode, ACCUMULATION_MODES),
    ],
)  # fmt: skip
def test_a_literal_is_its_registry(literal: object, registry: object) -> None:
    assert get_args(literal) == tuple(registry)  # type: ignore[call-overload] # an iterable of names


def test_usual_tags_have_every_name_and_nothing_that_is_no_format() -> None:
    assert set(_LOGICAL_ORDERS.values()) <= set(TAGS)
    for tag in TAGS:
        ndims = len({letter for letter in tag.lower() if letter.isalpha()})
        assert MemoryDesc((2,) * ndims, types.f32, tag).ndims == ndims
