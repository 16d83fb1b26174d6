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
from asmdnn.network.running import Runner
from asmdnn.network.saved import PackedNetwork, versions
from asmdnn.network.storage import precision_text
from asmdnn.network.words import borders_text
from asmdnn.planning.codec import encoded, plan_text
from asmdnn.runtime.byte_sums import byte_sum
from asmdnn.runtime.kernels import executor_spec, kernel_cache

ALIGNMENT_BYTES = 64
Text = dict[str, Any]
Sections = dict[str, list[bytes | memoryview]]


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
    pack_file.write(path_of(path), image_of(source))


def path_of(path: Any) -> Path:
    """Raises InvalidArguments for what is none."""
    try:
        return Path(path).absolute()
    except Exception:  # whatever the caller's object does
        raise InvalidArguments(f"path must be the path of a file, not {shown(path)}") from None


def declared_text(named: Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]) -> dict[str, Any]:
    """Types and dims."""
    return {name: [name_of(dtype), dims] for name, (dims, dtype) in named.items()}


def image_of(source: NetworkPlan | PackedNetwork) -> bytes:
    """The file's bytes."""
    if isinstance(source, PackedNetwork) and "weights" in source.image.sections:
        return bytes(source.image.whole)
    return b"".join(image_pieces(source))


def image_pieces(
    source: NetworkPlan | PackedNetwork, key: str = "", runner: Runner | None = None, weights_key: str = ""
) -> list[image_file.Piece]:
    """What a file consists of.  key: what it is kept under in a cache; runner: what runs the network, if that is there
    already; weights_key: what its weights are kept under, if they are not to be in this file."""
    text, sections, weights = written(source, runner)
    text = {**text, "key": key, "weights": weights_key, "sum": ""}
    data = weights.data.cast("B")
    if key and not weights_key:
        return image_file.pieces_of({**text, "sum": byte_sum(data).hex()}, sections, [data])
    return image_file.pieces_of(text, sections if weights_key else {**sections, "weights": [data]})


def written(source: NetworkPlan | PackedNetwork, runner: Runner | None = None) -> tuple[Text, Sections, Array]:
    """What its file says, the sections of code and arrays, and its weights.  runner: of a network that is to be kept in
    the cache: what batches do to bits is left out, as all would have to be planned again for that."""
    if isinstance(source, PackedNetwork):
        sections: Sections = {name: [source.image.sections[name]] for name in ("code", "arrays")}
        return source.image.text, sections, source.weights
    (segment,) = source.segments
    assert isinstance(segment, CompiledSegment)
    specs: list[Spec] = [*segment.joined.plan.specs, executor_spec(segment.joined.plan)]
    explained = source.explain() if runner is None else source.described()
    part = source.runnable.native
    if runner is None and part is not None and part.is_ready:
        runner = part.runner
    if runner is None:
        codes, weights = {spec: kernel_cache().fetch(spec).code for spec in specs}, packed(segment)
    else:
        own = [*runner.plan.specs, specs[-1]]
        loaded = dict(zip(own, runner.program.kernels, strict=True))
        codes, weights = {spec: loaded[spec].code for spec in specs}, runner.weights
    return *pieces_of(source, segment, codes, explained), weights


def pieces_of(
    source: NetworkPlan, segment: CompiledSegment, codes: Mapping[Spec, bytes], explained: str
) -> tuple[Text, Sections]:
    """What a file says, and its sections but the weights.  codes: of all kernels, the executor last; explained: what
    `explain` is to say of a network that comes from the file."""
    runnable, plan, layout = source.runnable, segment.joined.plan, segment.layout
    part = runnable.native
    assert part is not None, "callers have looked"
    code, shelf, arrays = Shelf(), Shelf(), list[list[Any]]()
    numbers: dict[int, int] = {}

    def shelve(array: Array) -> int:
        if id(array) not in numbers:
            numbers[id(array)] = len(arrays)
            arrays.append([name_of(array.dtype), list(array.shape), shelf.put(np.ascontiguousarray(array).tobytes())])
        return numbers[id(array)]

    kernels, places = list[dict[str, Any]](), dict[bytes, list[int]]()
    for spec, data in codes.items():  # several kernels have one code, where numbers make the difference
        if data not in places:
            places[data] = [code.put(data), len(data)]
        said = json.dumps(encoded(spec), separators=(",", ":"))
        kernels.append({"name": spec.name, "isa": spec.isa, "spec": said, "code": places[data]})
    text: dict[str, Any] = {
        **versions(),
        "title": runnable.title,
        "isa": runnable.isa,
        "machine": source.engine.machine,
        "explanation": explained,
        "precision": precision_text(source.precision),
        "inputs": declared_text(runnable.inputs),
        "outputs": declared_text(runnable.outputs),
        "reads": part.ends.reads,
        "makes": declared_text(part.ends.makes),
        "limits": dict(part.ends.limits),
        "checked": dict(part.ends.checked),
        "plan": plan_text(plan, shelve),
        "layout": {"arena": dict(layout.arena), "arena_bytes": layout.arena_bytes, "weights": dict(layout.weights)},
        "borders": borders_text(runnable.borders),
        "results": {name: x if isinstance(x, str) else shelve(x) for name, x in runnable.results.items()},
        "kernels": kernels,
        "arrays": arrays,
    }
    return text, {"code": code.pieces, "arrays": shelf.pieces}
