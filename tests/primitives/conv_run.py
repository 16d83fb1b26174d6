"""Running a convolution on data, and comparing with the reference."""

import numpy as np

import asmdnn as dnn
from tests.primitives.conv_case import ConvCase
from tests.primitives.conv_reference import Data, Floats, expected, make_data, tolerance
from tests.primitives.tensors import assert_within, bits, holding, read
from tests.support.plans import emulate_plan


def memories_of(pd: dnn.PrimitiveDesc, data: Data) -> dict[str, dnn.Memory]:
    """The arguments; a dst that is not read is poison all over, its zero padding too."""
    return {name: holding(desc, data.arrays().get(name)) for name, desc in pd.plan.tensors.items()}


def run(primitive: dnn.Primitive, data: Data) -> Floats:
    """dst for `data`; nothing else may have changed."""
    memories = memories_of(primitive.pd, data)
    before = {name: memory.array.copy() for name, memory in memories.items() if name != "dst"}
    primitive.execute(**memories)
    for name, array in before.items():
        assert np.array_equal(bits(memories[name].array), bits(array)), f"{name} was written"
    return read(memories["dst"])


def check_results(primitive: dnn.Primitive, case: ConvCase) -> None:
    """Equal on integers, within the bound on real numbers."""
    for integers in (True, False):
        data = make_data(case, integers)
        assert_within(run(primitive, data), expected(case, data), 0.0 if integers else tolerance(case, data))


def check_emulated(pd: dnn.PrimitiveDesc, case: ConvCase) -> None:
    """The plan on the emulator, within the bound."""
    data = make_data(case, False)
    memories = memories_of(pd, data)
    emulate_plan(pd.plan, memories)
    assert_within(read(memories["dst"]), expected(case, data), tolerance(case, data))
