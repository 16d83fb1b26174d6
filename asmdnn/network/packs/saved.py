"""A network from a file: plan, kernels and weights where they lie in it, checked before anything runs.

The text says what the network takes and gives, and has its parts (saved_parts.py); sections have the code of the
kernels, the arrays, and the weights.
"""

from functools import cache
from pathlib import Path

import numpy as np

from asmdnn.jit.digests import digest_of
from asmdnn.jit.image_file import Image, refusal
from asmdnn.network.calls.running import Runnable
from asmdnn.network.cuts import check_cuts, cuts_read
from asmdnn.network.narrow.storage import Precision, precision_read
from asmdnn.network.packs.kept_stages import MakeStages
from asmdnn.network.packs.pieces import EACH_ITS_OWN, NetworkPieces
from asmdnn.network.packs.saved_parts import PackedCall, PartReader, declared, declared_or_late
from asmdnn.network.packs.saved_states import SavedStates
from asmdnn.network.words import borders_of
from asmdnn.planning.decoded import require
from asmdnn.planning.host import require_executable
from asmdnn.records import dataclass
from asmdnn.version import __version__

WALKING = (  # the sources that what is in a file depends on beside its own code: who reads it, and what walks the plan
    "generators/context.py", "generators/executor.py", "network/joining/arena.py", "network/calls/running.py",
    "network/calls/weights.py", "network/packs/saved.py", "network/packs/saved_parts.py",
    "network/packs/saved_states.py", "network/states.py", "network/packs/node_text.py", "network/packs/kept_stages.py",
    "network/words.py", "network/cuts.py", "network/limits.py", "planning/codec.py", "planning/phase.py",
    "planning/phases.py", "planning/splitting.py", "runtime/context.py", "runtime/buffers.py", "runtime/execution.py",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class PackedNetwork:
    """A network that was planned before; `explanation` is what it said of itself then.  natives: its native parts;
    precision: what it was planned with, after calibration."""

    runnable: Runnable
    natives: tuple[PackedCall, ...]
    explanation: str
    image: Image
    precision: Precision
    states: SavedStates

    @property
    def kept_bytes(self) -> int:
        """Of its schedules."""
        return len(self.image.sections["arrays"])

    def check(self) -> None:
        """Prove what CompiledSegment.check() proves.  Raises PlanError."""
        for part in self.natives:
            part.check()

    def explain(self) -> str:
        return self.explanation


@cache
def versions() -> dict[str, str]:
    """What must be equal in the process that saves and the one that loads."""
    package = Path(__file__).resolve().parents[2]
    return {"asmdnn": __version__, "sources": digest_of(package / name for name in WALKING)}


def saved(
    image: Image,
    name: str,
    threads: int,
    pieces: NetworkPieces = EACH_ITS_OWN,
    stages: MakeStages | None = None,
) -> PackedNetwork:
    """The network in an intact image of that name, for so many threads.  stages: reads its model, if data decide dims.

    Raises InvalidArguments for another version and for what makes no sense, Unimplemented for a level that this CPU
    lacks.
    """
    check_versions(image, name)
    try:
        found = read(image, threads, pieces, stages)
    except Exception as error:  # nonsense makes any constructor fail in any way
        raise refusal(name, f"makes no sense ({type(error).__name__}: {error})", "make it again") from None
    require_executable(found.runnable.isa)
    return found


def check_versions(image: Image, name: str) -> None:
    """Raise InvalidArguments unless this version wrote it."""
    for key, mine in versions().items():
        theirs = image.text.get(key)
        if theirs != mine:
            was = f"was made with {key} {str(theirs)[:12]}, this is {mine[:12]}"
            raise refusal(name, was, "make it again with this version")


def read(
    image: Image, threads: int, pieces: NetworkPieces = EACH_ITS_OWN, stages: MakeStages | None = None
) -> PackedNetwork:
    """Raises anything where the text is nonsense."""
    text = image.text
    inputs, outputs = declared(text["inputs"]), declared_or_late(text["outputs"])
    reader = PartReader(image, inputs, threads, pieces, stages)
    parts = tuple(reader.part(part) for part in text["parts"])
    results = {name: x if isinstance(x, str) else reader.array(x) for name, x in text["results"].items()}
    for name, result in results.items():
        dims = reader.there[result][0] if isinstance(result, str) else np.shape(result)
        require(dims == outputs[name][0], f"output {name} is not made")
    require(results.keys() == outputs.keys() and type(text["title"]) is str, "no results")
    reader.states.check_made(reader.made, reader.there)
    borders = borders_of(text["borders"])
    require(borders.keys() <= outputs.keys(), "borders of no outputs")
    cuts = cuts_read(text["cuts"])
    check_cuts(cuts, outputs, reader.there)
    runnable = Runnable(
        title=text["title"],
        isa=text["isa"],
        inputs=inputs,
        outputs=outputs,
        results=results,
        parts=parts,
        states=reader.states.writes,
        borders=borders,
        cuts=cuts,
    )
    require(type(text["explanation"]) is str, "no explanation")
    return PackedNetwork(
        runnable=runnable,
        natives=tuple(reader.natives),
        explanation=text["explanation"],
        image=image,
        precision=precision_read(text["precision"]),
        states=reader.states,
    )
