"""An open network from a file: the shapes that were saved, each read when it comes first.

The text has what all have in common, their kernels too.  Each shape has a text and arrays of its own, as those of a
network (saved.py), with kernels by number, and where its weights lie in the section of all.
"""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from asmdnn.errors import InvalidArguments, counted
from asmdnn.jit.image_file import Image, refusal
from asmdnn.network.calls.weights import WeightPieces, checked_piece, in_pieces
from asmdnn.network.dims import Shapes, open_read
from asmdnn.network.graph import Model
from asmdnn.network.network import Network, Origin
from asmdnn.network.open import OpenNetwork
from asmdnn.network.packs.further import FurtherShapes, Load
from asmdnn.network.packs.pieces import SharedKernels, octets
from asmdnn.network.packs.saved import check_versions, saved
from asmdnn.network.packs.saved_parts import array_at
from asmdnn.network.packs.saved_states import at_first_read
from asmdnn.network.ranges import Progress
from asmdnn.planning.decoded import require
from asmdnn.planning.host import require_executable
from asmdnn.primitives.core.engine import Engine


class PackedShapes(SharedKernels):
    """The shapes of an intact image; name: of its file; further: makes the network that has others."""

    def __init__(self, image: Image, name: str, threads: int, further: Load | None = None) -> None:
        super().__init__()
        self._image, self._name, self._threads = image, name, threads
        self.made_of = str(image.text["model"])
        self._further = FurtherShapes(further, name, self.made_of, image.text["isa"]) if further else None
        self._weights = octets(image.sections["weights"])
        arrays = [array_at(image.sections["arrays"], *place) for place in image.text["arrays"]]
        self.states = at_first_read(image.text["states"], arrays.__getitem__)
        self._numbers = {key_of(shapes_of(each["dims"])): i for i, each in enumerate(image.text["shapes"])}

    @property
    def shapes(self) -> list[Shapes]:
        return [dict(key) for key in self._numbers]

    @property
    def kernel_count(self) -> int:
        """How many of different code the file has."""
        return len({tuple(kernel["code"]) for kernel in self._image.text["kernels"]})

    def weights(self, image: Image, part: Mapping[str, Any]) -> WeightPieces:
        """Raises KeyError where there are none, ValueError for places that are none."""
        return in_pieces([checked_piece(self._weights, *place) for place in part["weights"]])

    def at(self, asked: Shapes) -> Network:
        """The network of a shape.  Raises InvalidArguments where it was not saved, or makes no sense."""
        number = self._numbers.get(key_of(asked))
        if number is None and self._further:
            return self._further.at(asked)
        if number is None:
            has = "; ".join(said(dict(key)) for key in list(self._numbers)[:2])
            more = ", ..." if len(self._numbers) > 2 else ""
            known = f"has {len(self._numbers)} shapes, {has}{more}"
            way_out = "prepare that one, too, and save the network again, or load it with further="
            raise InvalidArguments(f"the pack {self._name!r} {known}, and none for {said(asked)}: {way_out}")
        found = saved(self._part(number), self._name, self._threads, self)
        if not found.states.are(self.states):
            raise nonsense(self._name, ValueError("states of one shape alone"))
        engine = partial(Engine, isa=found.runnable.isa, threads=self._threads)  # type: ignore[arg-type]
        return Network(engine, found, states=self.states)

    def _part(self, number: int) -> Image:
        whole = self._image
        try:
            text = json.loads(bytes(whole.sections[f"text {number}"]))
            text["kernels"] = [whole.text["kernels"][kernel] for kernel in text["kernels"]]
            natives = [part for part in text["parts"] if "plan" in part]
            for part, places in zip(natives, whole.text["shapes"][number]["weights"], strict=True):
                part["weights"] = places
            sections = {"code": whole.sections["code"], "arrays": whole.sections[f"arrays {number}"]}
        except Exception as error:  # nonsense fails in any way
            raise nonsense(self._name, error) from None
        return Image(text, sections, whole.whole, whole.last_used)


class OpenPackedNetwork(OpenNetwork):
    """An OpenNetwork of the shapes that a file has."""

    _owner: PackedShapes

    @property
    def model(self) -> Model:
        raise InvalidArguments("a network from a pack has no model: load its model for that")

    @property
    def shapes(self) -> list[Shapes]:
        """The dims of open inputs, by name: those of the file, then others that are held."""
        own = self._owner.shapes
        return [*own, *(shape for shape in super().shapes if shape not in own)]

    def prepare(self, shapes: Any = None, *, progress: Progress | None = None) -> None:
        """As OpenNetwork.prepare; default: all shapes of the file."""
        super().prepare(self.shapes if shapes is None else shapes, progress=progress)

    def _made_of(self) -> str:
        return self._owner.made_of

    def _closed_lines(self) -> list[str]:
        shapes, kernels = counted(len(self._owner.shapes), "shape"), counted(self._owner.kernel_count, "kernel")
        return [f"  the file has {shapes}, and {kernels} for all"]


def open_network(
    image: Image, name: str, threads: int, origin: Origin | None = None, further: Load | None = None
) -> OpenNetwork:
    """The network of an intact image; origin: what makes it again.  further: makes the network of its model.

    Raises InvalidArguments, Unimplemented as `saved`.
    """
    check_versions(image, name)
    text = image.text
    try:
        shapes = PackedShapes(image, name, threads, further)
        dims = open_read(text)
        require(all(asked.keys() == set(dims.open_inputs) for asked in shapes.shapes), "shapes of other inputs")
        require(type(text["title"]) is str and type(text["isa"]) is str, "no title")
    except Exception as error:
        raise nonsense(name, error) from None
    require_executable(text["isa"])
    if further and shapes.states is not None:
        raise InvalidArguments(f"further: the pack {name!r} has states, which no other network shares: leave it out")
    engine = Engine(isa=text["isa"], threads=threads)
    return OpenPackedNetwork(
        shapes, dims, engine, title=text["title"], make=shapes.at, origin=origin, states=shapes.states
    )


def nonsense(name: str, error: Exception) -> InvalidArguments:
    return refusal(name, f"makes no sense ({type(error).__name__}: {error})", "make it again")


def key_of(shapes: Shapes) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple(sorted(shapes.items()))


def said(shapes: Shapes) -> str:
    return ", ".join(f"{name} {'x'.join(map(str, dims))}" for name, dims in shapes.items())


def shapes_of(text: dict[str, Any]) -> Shapes:
    found = {name: tuple(dims) for name, dims in text.items()}
    require(all(type(n) is int and n >= 0 for dims in found.values() for n in dims), "dims that are none")
    return found
