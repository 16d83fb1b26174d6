"""Models with open dims: a network for each shape that comes, planned when it comes first."""

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import index
from os import PathLike
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.forking import importing
from asmdnn.memory.allocation import within_memory
from asmdnn.memory.sequences import items
from asmdnn.network.arrays import Array
from asmdnn.network.dims import AnyDim, OpenDims, Shapes
from asmdnn.network.graph import LARGEST_DIM, Model
from asmdnn.network.held import HeldNetwork, Key
from asmdnn.network.inputs import check_feeds, check_named, feeds_of_call, names_and_others
from asmdnn.network.network import FORMATS, Network, Origin
from asmdnn.network.packs.kept_shapes import KeptShapes
from asmdnn.network.packs.kept_stages import MakeStages
from asmdnn.network.prepared import PreparedShapes
from asmdnn.network.ranges import Progress, shapes_of, told_by
from asmdnn.network.states import StateArrays
from asmdnn.primitives.core.engine import Engine
from asmdnn.runtime.networks import forget, networks

MOST_KEPT = 64  # shapes of ranges that are kept on disk: of more its kernels alone, which are most of the work


class OpenNetwork(Network):
    """A Network whose inputs have dims that arrays bring: `load_onnx` and `Graph.compile` make it of such models.

    The first call at a shape plans it, and generates the kernels that no other shape has had; further calls find it
    again.  Weights are packed once for all shapes that read them in one format.  Of a file, shapes that are prepared or
    come again are kept in the cache on disk, and are not planned by later processes.  `set_memory_limits(networks=...)`
    bounds what is kept of shapes; the last one stays.

    inputs: (dims, numpy type) by name, where an open dim is its name, a Dim, or None.  `check`, `explain`, `page`,
    `dump` and `save` take a `shape`; what is passed to `bind`, `profile`, `verify`, ... has one.  Else what looks at a
    plan or at outputs looks at the last shape that was run or asked for.
    """

    _stages: MakeStages | None = None  # of shapes in which data decide dims, and which are kept on disk

    def __init__(
        self,
        owner: object,
        dims: OpenDims,
        engine: Engine,
        *,
        title: str,
        make: Callable[[Shapes], Network],
        origin: Origin | None,
        states: StateArrays | None = None,
    ) -> None:
        self._owner, self._dims, self._make, self._origin, self._states = owner, dims, make, origin, states
        self._title = title
        self._open = dims.open_inputs
        self._engine = lambda: engine
        self._again = None
        self._last: HeldNetwork | None = None
        self._kept: KeptShapes | None = None
        self._prepared = PreparedShapes()
        weakref.finalize(self, forget, owner)

    @property
    def is_open(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<OpenNetwork {self._title!r} of {self._dims}>"

    @property
    def inputs(self) -> dict[str, tuple[tuple[AnyDim, ...] | None, np.dtype[Any]]]:  # type: ignore[override]
        return {name: (self._dims.of(name), each.dtype) for name, each in self._dims.declared.items()}

    def _keep_shapes_under(self, key: str | None, fallback: str | None) -> None:
        """Have shapes that come again kept in the cache on disk, under a key of the model and what it is made with."""
        own = self._title, self._dims, self._states
        kept = self._kept = KeptShapes(key, self.engine.threads, fallback, *own) if key else None
        if kept is not None:
            for held in self._entries():  # by calibration
                held.store = partial(kept.put, dict(zip(self._open, held.key, strict=True)))

    @property
    def dims(self) -> OpenDims:
        """What inputs may be."""
        return self._dims

    @property
    def outputs(self) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:  # type: ignore[override]
        """Of the last shape."""
        return self.last.outputs

    @property
    def model(self) -> Model:
        assert isinstance(self._owner, Model)
        return self._owner

    @property
    def shapes(self) -> list[Shapes]:
        """The dims of open inputs that are held, by name; those in its file of a network from a pack."""
        return [dict(zip(self._open, key, strict=True)) for key in self._held()]

    def _held(self) -> dict[Key, Network]:
        return {each.key: each.network for each in self._entries()}

    def _entries(self) -> list[HeldNetwork]:
        every = [each for (owner, _), each in list(networks.entries.items()) if owner is self._owner]
        return [each for each in every if isinstance(each, HeldNetwork)]

    @property
    def last(self) -> Network:
        """That of the last shape.  Raises InvalidArguments if there was none."""
        if self._last is None:
            example = ", ".join(f"{name!r}: ..." for name in self._open)
            raise InvalidArguments(f"no shape is known yet: run the network, or say it by at({{{example}}})")
        return self._last.network

    def at(self, shapes: Mapping[str, Any]) -> Network:
        """The network for inputs of these dims; those of inputs without open dims may be left out.

        Raises InvalidArguments for dims that do not fit the model, are out of their range, or contradict one another;
        Unimplemented, OutOfMemory.
        """
        return self._at(shapes).network

    def _at(self, shapes: Any) -> HeldNetwork:
        if not isinstance(shapes, Mapping) or not set(self._open) <= shapes.keys() <= self._dims.declared.keys():
            raise InvalidArguments(f"shapes must have dims of {', '.join(self._open)}, not {shown(shapes)}")
        try:
            asked = {name: tuple(index(n) for n in items(shape)) for name, shape in shapes.items()}
        except Exception:  # whatever the caller's objects do
            raise InvalidArguments(f"shapes must be dims, tuples of integers, not {shown(shapes)}") from None
        if not all(0 <= n <= LARGEST_DIM for shape in asked.values() for n in shape):
            raise InvalidArguments(f"shapes must have dims from 0 to 2**63 - 1, not {shown(shapes)}")
        self._dims.check(asked)  # those of fixed inputs, too, which are no part of the key
        own = {name: asked[name] for name in self._open}
        return self._found(tuple(own.values()), own)

    def prepare(
        self,
        shapes: Mapping[str, Any] | Iterable[Mapping[str, Any]] | None = None,
        *,
        progress: Progress | None = None,
    ) -> None:
        """Plan for these shapes now, generate their kernels and pack their weights.

        shapes: several; those with a `Dim` or a name in place of a number stand for all shapes of that range, such as
        {"x": (1, 3, 48, dnn.Dim("width", 32, 2048, multiple=8))}.  Default: all shapes of the ranges that the network
        was loaded with.  Schedules that exceed the limit of networks are dropped again; kernels stay, so that none of
        these shapes generates one later.  progress: told the number of shapes that are done, and of all.
        Raises as `at`, and InvalidArguments for ranges without an end or with more than 10,000 shapes.
        """
        told = told_by(progress)
        every, is_range = shapes_of(self._dims, shapes)
        for done, each in enumerate(every):
            told(done, len(every))
            held = self._at(each)
            held.network.prepare_to_run()
            self._prepared.add(held.key, held.network)
            if is_range and len(every) > MOST_KEPT:
                held.store = None
            held.keep()

    @within_memory
    def save(self, path: str | PathLike[str], *, shape: Mapping[str, Any] | None = None) -> None:
        """Write all shapes that are held to a file, as Network.save does one: `load_pack` gives an OpenNetwork of them,
        which refuses others but for its `further`.  Code and weights that shapes have in common are there once.  shape:
        one, as `at` takes it, of which a network of fixed dims is written instead."""
        with importing():
            from asmdnn.network.packs.saving_shapes import write

        if shape is not None:
            self.at(shape).save(path)
            return
        _ = self.last  # says that there is none
        held = {**self._held(), self._last.key: self._last.network} if self._last else {}
        for key in self._prepared.keys - held.keys():  # dropped since
            held[key] = self._new(key, dict(zip(self._open, key, strict=True))).network
        for network in held.values():
            network._check_saved()
        write(
            path,
            self._title,
            self._dims,
            [(dict(zip(self._open, key, strict=True)), network._source) for key, network in held.items()],
            self._states,
            self._made_of(),
        )

    def _made_of(self) -> str:
        """What further shapes of its file have to be of."""
        with importing():
            from asmdnn.network.packs.made_of import made_of

        return made_of(self)

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        return self._for(feeds).run(feeds)

    def __call__(self, /, *arrays: Any, **named: Any) -> Array:
        feeds = feeds_of_call(arrays, named, self._dims.declared)
        return self._for(feeds)(**feeds)

    def bind(self, /, *unnamed: Any, **arrays: Array) -> Callable[[], None]:
        inputs = self._dims.declared
        check_named("bind()", unnamed, [*inputs, "all outputs"])
        feeds = {name: array for name, array in arrays.items() if name in inputs}
        if len(feeds) < len(inputs):
            raise InvalidArguments(f"arrays must be for all outputs, and for {names_and_others(arrays, inputs)}")
        return self._for(feeds).bind(**arrays)

    def check(self, shape: Mapping[str, Any] | None = None) -> None:
        """As Network.check, of a shape, as `at` takes it; default the last one."""
        self._looked_at(shape).check()

    def explain(self, shape: Mapping[str, Any] | None = None) -> str:
        """As Network.explain, of a shape, as `at` takes it, default the last one; and which kernels all prepared shapes
        have."""
        return "\n".join([self._looked_at(shape).explain(), *self._closed_lines()])

    def _closed_lines(self) -> list[str]:
        return self._prepared.lines()

    def page(
        self,
        feeds: Mapping[str, Any] | None = None,
        repeats: int = 20,
        title: str = "",
        *,
        shape: Mapping[str, Any] | None = None,
    ) -> str:
        """As Network.page, of the shape of `feeds`; without feeds of a shape, as `at` takes it; default the last one.
        Raises InvalidArguments for both."""
        if feeds is not None and shape is not None:
            raise InvalidArguments("feeds have a shape, and shape says one: leave one of them out")
        return (self._looked_at(shape) if feeds is None else self._for(feeds)).page(feeds, repeats, title)

    def dump(
        self, path: str | PathLike[str], formats: Sequence[str] = FORMATS, *, shape: Mapping[str, Any] | None = None
    ) -> None:
        """As Network.dump, of a shape, as `at` takes it; default the last one."""
        self._looked_at(shape).dump(path, formats)

    def _looked_at(self, shape: Mapping[str, Any] | None = None) -> Network:
        return self.last if shape is None else self.at(shape)

    def _for(self, feeds: Mapping[str, Any]) -> Network:
        """The network for arrays of these dims."""
        check_feeds(feeds, self._dims.declared.keys())
        key = tuple(self._shapes_in(feeds))
        last = self._last
        if last is not None and last.key == key:
            last.used = True
            last.keep()
            return last.network
        shapes = dict(zip(self._open, key, strict=True))
        if (self._owner, key) not in networks.entries:
            self._dims.check(shapes)
        return self._found(key, shapes).network

    def _shapes_in(self, feeds: Mapping[str, Any]) -> Iterator[tuple[int, ...]]:
        for name in self._open:
            array = feeds[name]
            if array is None:
                raise InvalidArguments(f"{name} must be an array, not None")
            try:
                yield array.shape if type(array) is np.ndarray else tuple(int(n) for n in np.shape(array))
            except Exception:  # whatever the caller's object does
                raise InvalidArguments(f"{name} must be an array, not {shown(array)}") from None

    def _found(self, key: Key, shapes: Shapes) -> HeldNetwork:
        held = networks.get((self._owner, key))
        if held is None:
            networks.count(self._last.grown_bytes() if self._last else 0)
            held = networks.put((self._owner, key), self._new(key, shapes))
        assert isinstance(held, HeldNetwork)
        held.keep()
        self._last = held
        return held

    def _new(self, key: Key, shapes: Shapes) -> HeldNetwork:
        """The network for a shape that is not held: from the disk, or planned."""
        kept = self._kept
        if kept is None:
            return HeldNetwork(key, self._make(shapes))
        if found := kept.find(shapes, self._stages):
            network = Network(lambda: self.engine, found, lambda: self._make(shapes), states=self._states)
            return HeldNetwork(key, network)
        return HeldNetwork(key, self._make(shapes), partial(kept.put, shapes))
