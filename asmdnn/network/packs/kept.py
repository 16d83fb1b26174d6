"""Networks in the cache on disk, beside the kernels: who loads a model again for the same dims plans nothing.

The key is a sum of all that a network depends on: the model's bytes, dims, constants, the engine, and this package's
sources by size and time of change, as Python knows when to compile a module again.  What is found is mapped, as a pack
is.  A network is stored when it has run for the first time, as kernels are generated and weights packed then.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from operator import index
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from asmdnn import environment
from asmdnn.errors import AsmdnnError, NotPackable
from asmdnn.files import content_of
from asmdnn.forking import importing
from asmdnn.isa.peachpy_version import PEACHPY_VERSION
from asmdnn.jit import tuned_folder
from asmdnn.jit.store import DiskStore, default_store
from asmdnn.network.calls.running import Runner
from asmdnn.network.dims import Dim
from asmdnn.network.narrow.storage import IN_F32, ErrorLimit, Precision, is_fallback
from asmdnn.network.onnx.wire import LARGEST_FILE_BYTES
from asmdnn.network.packs.kept_stages import MakeStages
from asmdnn.network.packs.pieces import EACH_ITS_OWN, NetworkPieces
from asmdnn.network.packs.saved import PackedNetwork, saved
from asmdnn.primitives.core.engine import Engine
from asmdnn.runtime.byte_sums import byte_sum
from asmdnn.version import __version__

if TYPE_CHECKING:
    from asmdnn.network.planned import NetworkPlan

SOURCES = ("definitions", "generators", "isa", "jit", "memory", "network", "planning", "primitives", "runtime")
ELSEWHERE = b"location"  # a model that names files beside it has this word
SEARCHED_BYTES = 16 << 20  # in larger ones tensors are passed over in less time than they are searched


@cache
def store() -> DiskStore | None:
    """Where networks are kept, None if nowhere; the variables are read at the first use.

    Not while all kernels are to be dumped or all plans proved, as both happen when they are made.
    """
    if environment.path(environment.DUMP) or environment.flag(environment.CHECK, default=False):
        return None
    return default_store()


def key_of(
    model: str | PathLike[str] | bytes,
    shapes: Any,
    constants: Any,
    engine: Engine,
    fallback: str | None,
    precision: Precision = IN_F32,
    limit: ErrorLimit | None = None,
) -> str | None:
    """What a network is kept under; None if it is not to be kept, or the arguments are none.

    fallback: no part of it, as a network that is native throughout is the one without; one with nodes in numpy has
    `key_with_numpy`.  limit: with the inputs that it is kept for, by which what stays f32 is found.
    """
    if not is_fallback(fallback) or store() is None:
        return None
    try:
        data = model if isinstance(model, bytes) else content_of(Path(model), LARGEST_FILE_BYTES)
        beside = sums_beside(data, None if isinstance(model, bytes) else Path(model).parent)
        dims = [(str(name), tuple(map(dim_text, shape))) for name, shape in items(shapes)]
        digest = hashlib.sha256(byte_sum(data))
        digest.update(repr((*made_for(engine, precision), dims, *beside)).encode())
        if limit is not None:
            digest.update(repr((limit.most, len(items(constants)))).encode())
        for name, value in [*items(constants), *items(limit and limit.feeds)]:
            array = np.asarray(value)
            if array.dtype.kind not in "fiub":
                return None
            digest.update(repr((str(name), array.dtype.str, array.shape)).encode() + array.tobytes())
    except Exception:  # whatever the caller's objects do: whoever plans says what is wrong with them
        return None
    return digest.hexdigest()


def key_with(key: str | None, seed: Any, state: Any, bounds: Any = None) -> str | None:
    """The key of a network that has, beside what `key` says, an input of the name `seed`, outputs tied to inputs, and
    values with bounds; None where these are no names and numbers, or there is no key."""
    if key is None or (seed is None and state is None and bounds is None):
        return key
    if not isinstance(state, Mapping | None):
        return None
    ties = [x for pair in items(state) for x in pair]
    if not all(isinstance(name, str) for name in ties) or not isinstance(seed, str | None):
        return None
    most = [*bounds.items()] if isinstance(bounds, Mapping) else []
    if not isinstance(bounds, Mapping | None) or not all(isinstance(x, str) and type(n) is int for x, n in most):
        return None
    return hashlib.sha256(f"{key} seed {seed!r} {ties} bounds {sorted(most)}".encode()).hexdigest()


def sums_beside(data: bytes, folder: Path | None) -> list[tuple[str, bytes]]:
    """Of the files beside a model that have its tensors.  Raises OSError for those that cannot be read, or are too
    large; TypeError where there is no folder."""
    if len(data) <= SEARCHED_BYTES and ELSEWHERE not in data:
        return []
    with importing():
        from asmdnn.network.onnx.external import external_files  # most models name none

    names = external_files(data)
    return [(name, byte_sum(content_of(folder / name, LARGEST_FILE_BYTES))) for name in names]  # type: ignore[operator]


def made_for(engine: Engine, precision: Precision) -> tuple[Any, ...]:
    """What decides a plan beside the model."""
    own = (engine.isa, engine.threads, engine.l2_bytes, engine.machine, engine.deterministic, repr(engine.tuning))
    return (*own, precision, sources(), tuned_folder.state())


def dim_text(dim: Any) -> str:
    """A number, the name of an open dim, or a Dim."""
    return repr(dim if dim is None or isinstance(dim, str | Dim) else index(dim))


def items(given: Any) -> list[tuple[Any, Any]]:
    """Raises TypeError for what is no mapping, which is not the same as none."""
    if not isinstance(given, Mapping | None):
        raise TypeError(type(given).__name__)
    return sorted((given or {}).items())


@cache
def sources() -> str:
    """sha256 of this package's version and of the name, size and time of change of all sources that decide a plan."""
    package = Path(__file__).resolve().parents[2]
    files = sorted(stat for unit in SOURCES for stat in stats_below(str(package / unit)))
    return hashlib.sha256(repr((__version__, PEACHPY_VERSION, files)).encode()).hexdigest()


def stats_below(folder: str) -> Iterator[tuple[str, int, int]]:
    """Path, size and time of change of all sources in a folder and its folders, compiled ones left out."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                info = entry.stat()
                yield entry.path, info.st_size, info.st_mtime_ns
            elif entry.is_dir(follow_symlinks=False) and entry.name != "__pycache__":
                yield from stats_below(entry.path)


def find(
    key: str,
    threads: int,
    fallback: str | None,
    pieces: NetworkPieces = EACH_ITS_OWN,
    stages: MakeStages | None = None,
) -> PackedNetwork | None:
    """The network that is kept under a key; with a fallback one that has nodes in numpy, too, and one in which data
    decide dims, of which `stages` reads the model."""
    kept = store()
    for each in (key, key_with_numpy(key))[: 1 if fallback is None else 2]:
        image = kept.get_image(each) if kept else None
        try:
            if image:
                return saved(image, each, threads, pieces, stages)
        except AsmdnnError:  # of another version, or of a level that the CPU lacks
            pass
    return None


def key_with_numpy(key: str) -> str:
    """What a network with nodes in numpy is kept under, so that nobody finds it who asked for none."""
    return hashlib.sha256(f"{key} with nodes in numpy".encode()).hexdigest()


def keep(key: str, planned: "NetworkPlan") -> None:
    """Have a network stored when all of its native parts have been made ready to run, now if they are."""
    natives, runners = planned.runnable.natives, dict[int, Runner]()
    if not natives:
        put(key, planned, ())

    def add(number: int, runner: Runner) -> None:
        runners[number] = runner
        if len(runners) == len(natives):
            put(key, planned, [runners[i] for i in range(len(natives))])

    for i, part in enumerate(natives):
        if part.is_ready:
            add(i, part.runner)
        else:
            part.make = partial(announced, part.make, partial(add, i))


def announced(make: Callable[[Sequence[str]], Runner], add: Callable[[Runner], None], names: Sequence[str]) -> Runner:
    """What `make` makes, told to `add`."""
    runner = make(names)
    add(runner)
    return runner


def put(key: str, planned: "NetworkPlan", runners: Sequence[Runner], weights_said: Sequence[Any] = ()) -> None:
    """Store a network, if it can be written down.  runners: of its native parts; weights_said: of their weights, if
    these are kept elsewhere."""
    with importing():
        from asmdnn.network.packs.saving import kept_pieces

    kept, own = store(), key if planned.runnable.native else key_with_numpy(key)
    try:
        if kept:
            kept.put_image(own, kept_pieces(planned, own, runners, weights_said))
    except NotPackable:  # by a plan or a node that has no words for a value: it is planned every time
        pass
