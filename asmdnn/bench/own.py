"""This library's side of a case: plan, bound primitive and its memory."""

from collections.abc import Mapping
from types import MappingProxyType

import asmdnn as dnn
from asmdnn.bench.driver import Array, Data
from asmdnn.bench.values import decoded, joined
from asmdnn.primitives.kind import Description

NOTHING: Mapping[str, str] = MappingProxyType({})


class Own:
    """A Side.  `in_place`: the result that shares an input's memory.  Several results come one after the other, flat.

    Raises Unimplemented if no implementation takes the description.
    """

    def __init__(
        self, desc: Description, attr: dnn.Attr, engine: dnn.Engine, in_place: Mapping[str, str] = NOTHING
    ) -> None:
        pd = dnn.primitive_desc(desc, attr=attr, engine=engine)
        self.implementation = pd.implementation
        self._memory = {name: dnn.Memory(tensor) for name, tensor in pd.plan.tensors.items()}
        self._results = pd.plan.outputs
        for result, source in in_place.items():
            self._memory[result] = self._memory[source]
        self._in_place = in_place
        scratchpad = dnn.Memory(pd.scratchpad_desc) if attr.scratchpad_mode == "user" else None
        self.run = dnn.Primitive(pd).bind(scratchpad=scratchpad, **self._memory)

    def write(self, data: Data) -> None:
        """Copy `data` into the arguments, each in the layout of the plan; by numpy, so that no reorder of the library
        can make up for an error of its primitive."""
        for name, memory in self._memory.items():
            if name in self._in_place:
                continue
            memory.array[:] = dnn.Memory.from_numpy(data.arrays[name], memory.desc).array

    def compute(self, data: Data) -> Array:
        self.write(data)
        self.run()
        return joined([decoded(self._memory[n].numpy(), self._memory[n].desc.dtype) for n in self._results])
