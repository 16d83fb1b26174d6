"""This library's side of a case: plan, bound primitive and its memory."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

import asmdnn as dnn
from asmdnn.bench.driver import Array, Data
from asmdnn.bench.values import decoded, encoded, joined
from asmdnn.errors import AsmdnnError, Unimplemented
from asmdnn.memory.split import SplitDesc
from asmdnn.primitives.core.description import Description, asked
from asmdnn.types import DataType

NOTHING: Mapping[str, str] = MappingProxyType({})


class PassedOver(AsmdnnError):
    """Implementations take the description, but none that was asked for."""


def any_implementation(name: str) -> bool:
    return True


class Own:
    """A Side.  `in_place`: the result that shares an input's memory.  Several results come one after the other, flat.
    internal: arguments that are neither filled nor compared.  `plan` is what runs.

    accepts: of an implementation's name, whether it may be taken.  Raises Unimplemented if no implementation takes the
    description, PassedOver if only others do.
    """

    def __init__(
        self,
        desc: Description,
        attr: dnn.Attr,
        engine: dnn.Engine,
        in_place: Mapping[str, str] = NOTHING,
        accepts: Callable[[str], bool] = any_implementation,
        internal: tuple[str, ...] = (),
    ) -> None:
        pd = dnn.primitive_desc(desc, attr=attr, engine=engine)
        if not accepts(pd.implementation):
            pd = _accepted(desc, attr, engine, accepts)
        self.implementation, self.plan = pd.implementation, pd.plan
        self._memory = {name: dnn.Memory(tensor) for name, tensor in pd.plan.tensors.items()}
        self._results = [name for name in pd.plan.outputs if name not in internal]
        for result, source in in_place.items():
            if (source, result) not in pd.plan.in_place:
                raise Unimplemented(f"{result} is not the memory of {source}, which {pd.implementation} reads later")
            self._memory[result] = self._memory[source]
        self._unfilled = {*in_place, *internal}
        self._asked = {name: tensor.dtype for name, tensor in asked(desc).items()}
        scratchpad = dnn.Memory(pd.scratchpad_desc) if attr.scratchpad_mode == "user" else None
        self.run = dnn.Primitive(pd).bind(scratchpad=scratchpad, **self._memory)

    def write(self, data: Data) -> None:
        """Copy `data` into the arguments, each in the layout of the plan; by numpy, so that no reorder of the library
        can make up for an error of its primitive."""
        for name, memory in self._memory.items():
            if name in self._unfilled:
                continue
            memory.array[:] = laid_out(data.arrays[name], self._asked.get(name), memory.desc).array

    def compute(self, data: Data) -> Array:
        self.write(data)
        self.run()
        return joined([decoded(self._memory[n].numpy(), self._memory[n].desc.dtype) for n in self._results])


def laid_out(array: Array, asked: DataType | None, desc: dnn.MemoryDesc) -> dnn.Memory:
    """Elements of the type asked for in the format of a plan, which may round or transform weights."""
    if asked in (None, desc.dtype):
        return dnn.Memory.from_numpy(array, desc)
    numbers = decoded(array, asked)
    high = encoded(numbers, desc.dtype)
    if not isinstance(desc, SplitDesc):
        return dnn.Memory.from_numpy(high, desc)
    low = encoded(numbers - decoded(high, desc.dtype), desc.dtype)
    parts = dnn.Memory.from_numpy(np.concatenate((high, high, low), desc.depth), desc.storage)
    return dnn.Memory(desc, parts.array, padding_is_zero=True)


def _accepted(
    desc: Description, attr: dnn.Attr, engine: dnn.Engine, accepts: Callable[[str], bool]
) -> dnn.PrimitiveDesc:
    found = [pd for pd in dnn.implementations(desc, attr, engine) if isinstance(pd, dnn.PrimitiveDesc)]
    for pd in found:
        if accepts(pd.implementation):
            return pd
    raise PassedOver(f"--impl and --skip-impl leave none of {', '.join(pd.implementation for pd in found)}")
