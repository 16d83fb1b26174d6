"""A network as a file; see saved.py for what is in it."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from asmdnn.errors import InvalidArguments, NotPackable, shown
from asmdnn.generators.contract import Spec
from asmdnn.jit import image_file, pack_file
from asmdnn.network.calls.running import NativePart, Runner
from asmdnn.network.calls.weights import WeightPieces
from asmdnn.network.compiled import CompiledSegment, packed
from asmdnn.network.cuts import cuts_text
from asmdnn.network.narrow.storage import precision_text
from asmdnn.network.packs.saved import PackedNetwork, versions
from asmdnn.network.packs.saved_states import states_text
from asmdnn.network.packs.saving_parts import PartWriter, Shelf, Text, declared_text
from asmdnn.network.planned import NetworkPlan
from asmdnn.network.words import borders_text
from asmdnn.runtime.byte_sums import byte_sum
from asmdnn.runtime.kernels import executor_spec, kernel_cache

Sections = dict[str, list[bytes | memoryview]]


def write(path: str | PathLike[str], source: NetworkPlan | PackedNetwork) -> None:
    """Write a network to a file.  Raises InvalidArguments."""
    where = path_of(path)
    try:
        image = image_of(source)
    except NotPackable as error:  # of a node in numpy
        raise InvalidArguments(cannot_be_saved(error)) from None
    pack_file.write(where, image)


def cannot_be_saved(error: NotPackable) -> str:
    return f"the network cannot be saved, as {error}: keep its model, and use load_onnx"


def path_of(path: Any) -> Path:
    """Raises InvalidArguments for what is none."""
    try:
        return Path(path).absolute()
    except Exception:  # whatever the caller's object does
        raise InvalidArguments(f"path must be the path of a file, not {shown(path)}") from None


def image_of(source: NetworkPlan | PackedNetwork) -> bytes:
    """The bytes of a network's file.  Raises NotPackable."""
    if isinstance(source, PackedNetwork) and "weights" in source.image.sections:
        return bytes(source.image.whole)
    text, sections, weights = written(source)
    shelf, left, parts = Shelf(), iter(weights), list[Text]()
    for part in text["parts"]:
        if "plan" in part:
            data = next(left).whole().data.cast("B")
            part = {**part, "weights": [shelf.put(data), len(data)], "sum": ""}
        parts.append(part)
    return image_file.image_of({**text, "key": "", "parts": parts}, {**sections, "weights": shelf.pieces})


def kept_pieces(
    source: NetworkPlan, key: str, runners: Sequence[Runner], weights_said: Sequence[Any] = ()
) -> list[image_file.Piece]:
    """What a file in a cache consists of.  key: what it is kept under; runners: of its native parts; weights_said: of
    their weights, if they are not to be in this file.  Raises NotPackable."""
    text, sections, weights = written(source, runners)
    natives = [part for part in text["parts"] if "plan" in part]
    apart = Shelf()
    for part, packed_weights, said in zip(natives, weights, weights_said or [()] * len(weights), strict=True):
        part |= {"weights": said, "sum": ""}
        if not said:
            data = packed_weights.whole().data.cast("B")
            part |= {"sum": byte_sum(data).hex(), "apart": [apart.put(data), len(data)]}
    return image_file.pieces_of({**text, "key": key}, sections, apart.pieces)


def written(
    source: NetworkPlan | PackedNetwork, runners: Sequence[Runner] | None = None
) -> tuple[Text, Sections, list[WeightPieces]]:
    """What its file says, the sections of code and arrays, and the weights of its native parts.  runners: of a network
    that is to be kept in the cache: what batches do to bits is left out, as all would have to be planned again for
    that.  Raises NotPackable."""
    if isinstance(source, PackedNetwork):
        sections: Sections = {name: [source.image.sections[name]] for name in ("code", "arrays")}
        return source.image.text, sections, [part.weights for part in source.natives]
    if source.later and runners is None:
        raise NotPackable("data decide dims of the network, whose model a file of its own lacks")
    writer, weights, parts = PartWriter(), list[WeightPieces](), list[Text]()
    segments = iter(segment for segment in source.segments if isinstance(segment, CompiledSegment))
    known = iter(runners or ())
    for part in source.runnable.parts:
        if not isinstance(part, NativePart):
            parts.append(writer.other(part))
            continue
        segment = next(segments)
        runner = next(known, part.runner if part.is_ready else None)
        codes, own = loaded(segment, runner) if runner else generated(segment)
        parts.append(writer.native(part, segment, codes))
        weights.append(own)
    text = text_of(source, writer, parts, source.explain() if runners is None else source.described())
    return text, {"code": writer.code.pieces, "arrays": writer.shelf.pieces}, weights


def specs_of(segment: CompiledSegment) -> list[Spec]:
    """Of all kernels, the executor last."""
    return [*segment.joined.plan.specs, executor_spec(segment.joined.plan)]


def generated(segment: CompiledSegment) -> tuple[Mapping[Spec, bytes], WeightPieces]:
    """Code and weights of a part that has not run."""
    return {spec: kernel_cache().fetch(spec).code for spec in specs_of(segment)}, packed(segment)


def loaded(segment: CompiledSegment, runner: Runner) -> tuple[Mapping[Spec, bytes], WeightPieces]:
    """Code and weights of a part that has run."""
    specs = specs_of(segment)
    known = dict(zip([*runner.plan.specs, specs[-1]], runner.program.kernels, strict=True))
    return {spec: known[spec].code for spec in specs}, runner.weights


def text_of(source: NetworkPlan, writer: PartWriter, parts: list[Text], explained: str) -> Text:
    """What a file says.  explained: what `explain` is to say of a network that comes from the file."""
    runnable = source.runnable
    return {
        **versions(),
        "title": runnable.title,
        "isa": runnable.isa,
        "machine": source.engine.machine,
        "explanation": explained,
        "precision": precision_text(source.precision),
        "inputs": declared_text(runnable.inputs),
        "outputs": declared_text(runnable.outputs),
        "borders": borders_text(runnable.borders),
        "cuts": cuts_text(runnable.cuts),
        "results": {name: x if isinstance(x, str) else writer.array(x) for name, x in runnable.results.items()},
        "states": states_text(runnable.states, source.rooms, writer.array),
        "parts": parts,
        "kernels": writer.kernels,
        "arrays": writer.arrays,
    }
