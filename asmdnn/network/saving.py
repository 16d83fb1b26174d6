"""A network as a file; see saved.py for what is in it."""

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.generators.contract import Spec
from asmdnn.jit import image_file, pack_file
from asmdnn.network.compiled import CompiledSegment, packed
from asmdnn.network.graph import Array
from asmdnn.network.passing import name_of
from asmdnn.network.planned import NetworkPlan
from asmdnn.network.saved import PackedNetwork, versions
from asmdnn.planning.codec import encoded, plan_text
from asmdnn.runtime.execution import executor_spec, kernel_cache

ALIGNMENT_BYTES = 64


class Shelf:
    """Pieces one after another, each at a multiple of 64."""

    def __init__(self) -> None:
        self.pieces: list[bytes | memoryview] = []
        self.end = 0

    def put(self, data: bytes) -> int:
        """Where it lies."""
        at = self.end
        self.pieces += [data, bytes(-len(data) % ALIGNMENT_BYTES)]
        self.end += len(data) + -len(data) % ALIGNMENT_BYTES
        return at


def write(path: str | PathLike[str], source: NetworkPlan | PackedNetwork) -> None:
    """Write a native network to a file.  Raises InvalidArguments."""
    try:
        where = Path(path).absolute()
    except Exception:  # whatever the caller's object does
        raise InvalidArguments(f"path must be the path of a file, not {shown(path)}") from None
    pack_file.write(where, image_of(source))


def declared_text(named: Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]) -> dict[str, Any]:
    """Types and dims."""
    return {name: [name_of(dtype), dims] for name, (dims, dtype) in named.items()}


def image_of(source: NetworkPlan | PackedNetwork, key: str = "", weights: Array | None = None) -> bytes:
    """The file's bytes.  key: what it is kept under in a cache; weights: packed, if they are already."""
    if isinstance(source, PackedNetwork):
        return bytes(source.image.whole)
    (segment,) = source.segments
    assert isinstance(segment, CompiledSegment)
    return image_of_native(source, segment, key, packed(segment) if weights is None else weights)


def image_of_native(source: NetworkPlan, segment: CompiledSegment, key: str, weights: Array) -> bytes:
    """The file's bytes.  Generates kernels that do not exist yet."""
    runnable, plan, layout = source.runnable, segment.joined.plan, segment.layout
    part = runnable.native
    assert part is not None, "callers have looked"
    cache, code, shelf, arrays = kernel_cache(), Shelf(), Shelf(), list[list[Any]]()
    numbers: dict[int, int] = {}

    def shelve(array: Array) -> int:
        if id(array) not in numbers:
            numbers[id(array)] = len(arrays)
            arrays.append([name_of(array.dtype), list(array.shape), shelf.put(np.ascontiguousarray(array).tobytes())])
        return numbers[id(array)]

    kernels, places = list[dict[str, Any]](), dict[bytes, list[int]]()
    specs: list[Spec] = [*plan.specs, executor_spec(plan)]
    for spec in specs:
        data = cache.fetch(spec).code  # of several kernels, where numbers make the difference
        if data not in places:
            places[data] = [code.put(data), len(data)]
        said = json.dumps(encoded(spec), separators=(",", ":"))
        kernels.append({"name": spec.name, "isa": spec.isa, "spec": said, "code": places[data]})
    text: dict[str, Any] = {
        **versions(),
        "key": key,
        "title": runnable.title,
        "isa": runnable.isa,
        "machine": source.engine.machine,
        "explanation": source.explain(),
        "inputs": declared_text(runnable.inputs),
        "outputs": declared_text(runnable.outputs),
        "reads": part.ends.reads,
        "makes": declared_text(part.ends.makes),
        "limits": dict(part.ends.limits),
        "checked": dict(part.ends.checked),
        "plan": plan_text(plan, shelve),
        "layout": {"arena": dict(layout.arena), "arena_bytes": layout.arena_bytes, "weights": dict(layout.weights)},
        "results": {name: x if isinstance(x, str) else shelve(x) for name, x in runnable.results.items()},
        "kernels": kernels,
        "arrays": arrays,
    }
    blob: list[bytes | memoryview] = [weights.data.cast("B")]
    return image_file.image_of(text, {"code": code.pieces, "arrays": shelf.pieces, "weights": blob})
