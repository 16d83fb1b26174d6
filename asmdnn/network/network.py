"""Networks: what users load, run, look at, save and check."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from os import PathLike
from typing import TYPE_CHECKING, Any

from asmdnn.errors import InvalidArguments
from asmdnn.forking import importing
from asmdnn.memory.allocation import within_memory
from asmdnn.network.arrays import Array
from asmdnn.network.calls.plain_call import PlainCall, plain_call_of
from asmdnn.network.calls.running import NativePart, Runnable
from asmdnn.network.cuts import check_no_cuts
from asmdnn.network.inputs import (
    check_apart,
    check_bound,
    check_named,
    checked_feeds,
    feeds_of_call,
    names_and_others,
)
from asmdnn.network.keeping import with_states
from asmdnn.network.packs.kept_stages import KeptPartOfData, WaitingPart
from asmdnn.network.states import StateArrays
from asmdnn.network.views import PlanViews
from asmdnn.network.words import check_no_borders, delivered
from asmdnn.primitives.core.engine import Engine

if TYPE_CHECKING:  # a network from a pack runs without planners
    from asmdnn.network.packs.saved import PackedNetwork
    from asmdnn.network.planned import NetworkPlan

Origin = tuple[Callable[..., "Network"], tuple[Any, ...]]
FORMATS = ("bin", "s", "o", "h")  # of files of kernels


class Network(PlanViews):
    """A model for inputs of fixed shapes, planned as a whole; `load_onnx`, `Graph.compile` and `load_pack` make it.

    Planning is done when it is made; kernels are generated and weights packed with the first run.  Equal bits for every
    number of threads; safe to run from many threads at once.  inputs, outputs: (dims, numpy type) by name.
    """

    def __init__(
        self,
        engine: Callable[[], Engine],
        source: "NetworkPlan | PackedNetwork",
        again: "Callable[[], Network] | None" = None,
        origin: "Origin | None" = None,
        states: StateArrays | None = None,
    ) -> None:
        self._engine, self._source, self._again, self._origin, self._states = engine, source, again, origin, states
        runnable: Runnable = source.runnable
        self._runnable, self.inputs, self.outputs = runnable, dict(runnable.inputs), runnable.types()
        self._plain: PlainCall | None = None  # from the first run on, where nothing is unusual
        self._is_first = True

    def __repr__(self) -> str:
        return f"<Network {self._runnable.title}>"

    def __reduce__(self) -> Any:
        """For pickle, so for multiprocessing, joblib and others: see pickling.py."""
        if self._states is not None:
            return with_states, (*self.origin, dict(self._states))
        if self.is_open or not self.is_native:
            return self.origin
        with importing():
            from asmdnn.network.packs.saving import image_of

        return Network.of_image, (image_of(self._source), self.engine.threads)

    @staticmethod
    def of_image(image: bytes, threads: int) -> "Network":
        """The network in a pack's bytes, as a pickle has them.  Raises InvalidArguments, Unimplemented."""
        with importing():
            from asmdnn.network.packs.pickling import found_in

        found = found_in(image, threads)
        engine = partial(Engine, isa=found.runnable.isa, threads=threads)  # type: ignore[arg-type]
        return Network(engine, found, states=found.states.arrays())

    @property
    def is_open(self) -> bool:
        """Whether inputs have dims that arrays bring: an OpenNetwork."""
        return False

    @cached_property
    def engine(self) -> Engine:
        """What it is planned for; of a pack, the machine at hand with the pack's level."""
        return self._engine()

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        """The outputs by name, new arrays, for inputs by name: arrays of the network's dims and types.

        Raises InvalidArguments for inputs that are missing, unknown or do not fit, and for a network with state while
        another call of it runs.
        """
        if self._plain is not None and (plain := self._plain.outputs(feeds)) is not None:
            return plain
        checked = checked_feeds(feeds, self.inputs)
        if self._states is not None:
            with self._states as states:
                return delivered(self._runnable.run_in_place(checked, states), self._runnable.borders)
        found = delivered(self._runnable.run(checked), self._runnable.borders)
        if self._is_first:
            self._plain, self._is_first = plain_call_of(self._runnable), False
        return found

    def __call__(self, /, *arrays: Any, **named: Any) -> Array:
        """The output of a network that has a single one: `net(x)` for its single input, or inputs by name.

        Raises as `run`, and InvalidArguments for a network of several outputs.
        """
        feeds = feeds_of_call(arrays, named, self.inputs)
        if len(self.outputs) != 1:
            raise InvalidArguments(f"the network has the outputs {', '.join(self.outputs)}, not one: use run()")
        return next(iter(self.run(feeds).values()))

    @within_memory
    def bind(self, /, *unnamed: Any, **arrays: Array) -> Callable[[], None]:
        """A call on fixed arrays, dense ones, one for each input and output: `run = net.bind(x=x, y=y)`, `run()`.

        Outputs share no memory with other arrays.  For networks that are native throughout.  Bind once per thread that
        calls it.  Raises InvalidArguments.
        """
        if self._states is not None:
            raise InvalidArguments("a network with state cannot be bound: use run()")
        part, results = self._native("bound"), self._runnable.results
        check_no_borders(self._runnable.borders)
        check_no_cuts(self._runnable.cuts)
        if part.ends.checked:
            name = next(iter(part.ends.checked))
            raise InvalidArguments(f"indices {name} are made by the network and looked at after a run: use run()")
        wanted = {**self.inputs, **self.outputs}
        check_named("bind()", unnamed, wanted)
        if arrays.keys() != wanted.keys():
            raise InvalidArguments(f"arrays must be {names_and_others(arrays, wanted)}")
        for name, (shape, dtype) in wanted.items():
            check_bound(name, arrays[name], shape, dtype, name in self.outputs)
        made = {result: arrays[name] for name, result in results.items() if isinstance(result, str)}
        if len(made) < len(results) or made.keys() != part.ends.makes.keys():
            raise InvalidArguments("two outputs are one value, or one is an input or a constant: use run()")
        check_apart(wanted, self.outputs, arrays)
        return part.bind({name: arrays[name] for name in self.inputs}, made)

    @within_memory
    def prepare_to_run(self) -> None:
        """Generate kernels and pack weights now, and not with the first run.  Raises Unimplemented where the CPU lacks
        the level."""
        for part in self._looked_at()._runnable.parts:
            part.prepare()

    def check(self) -> None:
        """Prove, without running anything, that no step leaves its buffers, that everything that is read has been
        written, and that no value is overwritten before its last reader.  Raises PlanError."""
        self._source.check()

    def explain(self) -> str:
        """Which operators became which primitives and kernels, with layouts, reorders, and memory."""
        return self._source.explain() if self._again is None else self.planned("explained").explain()

    def page(self, feeds: Mapping[str, Any] | None = None, repeats: int = 20, title: str = "") -> str:
        """What `explain` says as an HTML page that needs no other file, with bytes, cycles and the arena as a picture.

        feeds: to measure primitives: the least of `repeats` (1 to 100000) runs.  title: default: the model's name."""
        with importing():
            from asmdnn.network.page.html import html_of

        seconds = None if feeds is None else self._times("measured", feeds, repeats)
        return html_of(self.planned("explained on a page"), seconds, title)

    def dump(self, path: str | PathLike[str], formats: Sequence[str] = FORMATS) -> None:
        """Write all kernels, the executor, what `explain` says, and manifest.json to a directory, for any ISA level.
        formats: some of "bin", "s", "o" and "h", as `asmdnn dump` writes them.  Raises InvalidArguments."""
        with importing():
            from asmdnn.network.dumping import dump

        dump(self.planned("dumped"), path, formats)

    @within_memory
    def save(self, path: str | PathLike[str]) -> None:
        """Write plan, kernels and packed weights to a file, for `load_pack`: a process that loads it needs neither the
        model nor PeachPy, plans and packs nothing, and maps the weights.  On any machine, whatever the ISA level.
        Nodes in numpy are in the file, too.  Raises InvalidArguments for a network in which data decide dims, and if
        the file cannot be written."""
        with importing():
            from asmdnn.network.packs.saving import write

        self._check_saved()
        write(path, self._source)

    def _check_saved(self) -> None:
        """Raise InvalidArguments for what no file can hold."""
        parts = self._runnable.parts
        if not parts:
            raise InvalidArguments("a network that computes nothing cannot be saved, use run()")
        if any(isinstance(part, WaitingPart | KeptPartOfData) for part in parts):
            what = "a network in which data decide dims cannot be saved, as that takes its model"
            raise InvalidArguments(f"{what}: use load_onnx, which keeps what it has planned in the cache on disk")

    def _native(self, what: str) -> NativePart:
        """The part of a network that has no other."""
        part = self._runnable.native
        if part is None and not self._runnable.parts:
            raise InvalidArguments(f"a network that computes nothing cannot be {what}, use run()")
        if part is None:
            raise InvalidArguments(f"only a network without nodes in numpy can be {what}, use run()")
        return part

    def _for(self, feeds: Mapping[str, Any]) -> "Network":
        return self

    def _looked_at(self) -> "Network":
        return self

    def _own_plan(self, what: str) -> "NetworkPlan":
        with importing():
            from asmdnn.network.planned import NetworkPlan

        if isinstance(self._source, NetworkPlan):
            return self._source
        if self._again is None:
            raise InvalidArguments(f"a network from a pack cannot be {what}: load its model, or make it, for that")
        self._source = found = self._again().planned()
        assert isinstance(found, NetworkPlan)
        return found
