"""What every gradient must pass: its definition, equal bits for all numbers of threads."""

from collections.abc import Mapping
from typing import Any

import numpy as np

import asmdnn as dnn
from asmdnn.primitives.core.description import Description
from tests.primitives.conv_case import MACHINE
from tests.primitives.tensors import assert_within, holding, read
from tests.support.plans import proved_desc

Arrays = Mapping[str, np.ndarray]  # by the names of arguments
Results = Mapping[str, Any]
THREADS = (1, 2, 3, 7)


def proved(desc: Description, isa: str, threads: int = 1, attr: dnn.Attr | None = None) -> dnn.PrimitiveDesc:
    return proved_desc(desc, attr or dnn.Attr(), dnn.Engine(isa=isa, machine=MACHINE, threads=threads))


def memories_of(pd: dnn.PrimitiveDesc, arrays: Arrays) -> dict[str, dnn.Memory]:
    def memory_of(name: str, desc: dnn.MemoryDesc) -> dnn.Memory:
        transformed = desc.storage is not desc
        return dnn.Memory.from_numpy(arrays[name], desc) if transformed else holding(desc, arrays.get(name))

    return {name: memory_of(name, desc) for name, desc in pd.plan.tensors.items()}


def run(pd: dnn.PrimitiveDesc, arrays: Arrays) -> dict[str, np.ndarray]:
    """The results, for inputs by name."""
    memories = memories_of(pd, arrays)
    dnn.Primitive(pd).execute(**memories)
    return {name: read(memories[name]) for name in pd.plan.outputs}


def assert_results(results: Results, wanted: Results, tolerance: Any = 0.0) -> None:
    assert {*results} == {*wanted}
    for name, values in wanted.items():
        allowed = tolerance[name] if isinstance(tolerance, dict) else tolerance
        assert_within(results[name], np.asarray(values, np.float64), allowed)


def check(desc: Description, arrays: Arrays, wanted: Results, isa: str, tolerance: Any = 0.0) -> dnn.PrimitiveDesc:
    """Proved, right, and equal for all numbers of threads; what was planned."""
    results = [run(proved(desc, isa, threads), arrays) for threads in THREADS]
    assert_results(results[0], wanted, tolerance)
    for other in results[1:]:
        for name, values in results[0].items():
            assert other[name].tobytes() == values.tobytes(), f"{name} depends on the number of threads"
    return proved(desc, isa)
