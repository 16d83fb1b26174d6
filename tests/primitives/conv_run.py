"""Running a convolution on data, and comparing with the reference."""

from collections.abc import Iterable

import numpy as np

import asmdnn as dnn
from tests.primitives.conv_case import ConvCase
from tests.primitives.conv_reference import Data, Floats, expected, make_data, tolerance
from tests.primitives.guarded import guarded_memory, in_child
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


def check_threads(pds: Iterable[dnn.PrimitiveDesc], case: ConvCase) -> None:
    """The same bits of all."""
    results = [run(dnn.Primitive(pd), make_data(case, False)) for pd in pds]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def check_guarded(pd: dnn.PrimitiveDesc, at_end: bool) -> None:
    """Every tensor begins, or ends, at an unmapped page."""
    found = {name: guarded_memory(desc, at_end) for name, desc in pd.plan.tensors.items()}  # their buffers stay alive
    memories = {name: memory for name, (memory, _) in found.items()}
    for memory in memories.values():
        memory.array[:] = 1
    primitive = dnn.Primitive(pd)
    assert not in_child(lambda: primitive.execute(**memories))
