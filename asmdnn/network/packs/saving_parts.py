"""The parts of a network as a file says them; saved_parts.py reads them."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from asmdnn.errors import NotPackable
from asmdnn.generators.contract import Spec
from asmdnn.network.calls.numpy_part import NumpyPart
from asmdnn.network.calls.running import NativePart, NetworkPart
from asmdnn.network.compiled import CompiledSegment
from asmdnn.network.cuts import cuts_text
from asmdnn.network.graph import NOTHING, Array
from asmdnn.network.looked_at_first import IntegersAgain
from asmdnn.network.packs.kept_stages import WaitingPart
from asmdnn.network.packs.node_text import known_text, node_text
from asmdnn.network.passing import name_of
from asmdnn.planning.codec import encoded, plan_text

ALIGNMENT_BYTES = 64
Text = dict[str, Any]


class Shelf:
    """Pieces one after another, each at a multiple of 64."""

    def __init__(self) -> None:
        self.pieces: list[bytes | memoryview] = []
        self.end = 0

    def put(self, data: bytes | memoryview) -> int:
        """Where it lies."""
        at = self.end
        self.pieces += [data, bytes(-len(data) % ALIGNMENT_BYTES)]
        self.end += len(data) + -len(data) % ALIGNMENT_BYTES
        return at


class PartWriter:
    """What a file says of parts.  kernels, arrays: what it says of these, which parts name by their numbers."""

    def __init__(self) -> None:
        self.code, self.shelf = Shelf(), Shelf()
        self.kernels, self.arrays = list[Text](), list[list[Any]]()
        self._places = dict[bytes, list[int]]()  # several kernels have one code, where numbers make the difference
        self._kernel_numbers = dict[Spec, int]()
        self._numbers = dict[int, int]()
        self._held = list[Array]()  # so that ids stay their own

    def array(self, array: Array) -> int:
        """Its number.  Raises NotPackable for one of objects."""
        if array.dtype.hasobject:
            raise NotPackable("an array of objects has no bytes")
        if id(array) not in self._numbers:
            self._held.append(array)
            self._numbers[id(array)] = len(self.arrays)
            place = self.shelf.put(np.ascontiguousarray(array).tobytes())
            self.arrays.append([name_of(array.dtype), list(array.shape), place])
        return self._numbers[id(array)]

    def kernel(self, spec: Spec, code: bytes) -> int:
        """Its number."""
        if spec not in self._kernel_numbers:
            if code not in self._places:
                self._places[code] = [self.code.put(code), len(code)]
            said = json.dumps(encoded(spec), separators=(",", ":"))
            self._kernel_numbers[spec] = len(self.kernels)
            self.kernels.append({"name": spec.name, "isa": spec.isa, "spec": said, "code": self._places[code]})
        return self._kernel_numbers[spec]

    def native(self, part: NativePart, segment: CompiledSegment, codes: Mapping[Spec, bytes]) -> Text:
        """codes: of all kernels, the executor last."""
        layout, ends = segment.layout, part.ends
        return {
            "kernels": [self.kernel(spec, code) for spec, code in codes.items()],
            "reads": ends.reads,
            "makes": declared_text(ends.makes),
            "limits": dict(ends.limits),
            "checked": dict(ends.checked),
            "plan": plan_text(segment.joined.plan, self.array),
            "states": [list(each) for each in segment.joined.states],
            "layout": {"arena": dict(layout.arena), "arena_bytes": layout.arena_bytes, "weights": dict(layout.weights)},
        }

    def other(self, part: NetworkPart) -> Text:
        """Raises NotPackable for nodes that a file has no words for."""
        if isinstance(part, IntegersAgain):
            return {"integers": {name: name_of(dtype) for name, dtype in part.dtypes.items()}}
        if isinstance(part, WaitingPart):
            return self.waiting(part)
        assert isinstance(part, NumpyPart), "there are no other parts"
        names = {name for node in part.nodes for name in (*node.inputs, *node.outputs)} - {NOTHING}
        known = {name: part.known[name] for name in sorted(names) if name in part.known}
        return {
            "values": known_text(known, self.array),
            "nodes": [node_text(node, self.array) for node in part.nodes],
        }

    def waiting(self, part: WaitingPart) -> Text:
        """Where the model is cut, and what is known in front of it: the model itself has the rest."""
        before = part.before
        return {
            "cuts": [[list(outputs), value] for outputs, value in part.found],
            "results": {name: x if isinstance(x, str) else self.array(x) for name, x in before.results.items()},
            "outputs": declared_text(before.outputs),
            "cut": cuts_text(before.cuts),
            "late": list(part.late),
        }


def declared_text(named: Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]) -> dict[str, Any]:
    """Types and dims; None where data decide them."""
    return {name: None if dims is None else [name_of(dtype), dims] for name, (dims, dtype) in named.items()}
