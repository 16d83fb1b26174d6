"""Writing a network or a primitive for C: object, header, runtime, and a shared library where there is a compiler."""

import shutil
import subprocess
import textwrap
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Final

from asmdnn.errors import InvalidArguments, reason_of, shown
from asmdnn.export.header import checked_name, header, identifier
from asmdnn.export.image import ObjectImage
from asmdnn.export.interface import CInterface, of_network, of_primitive
from asmdnn.export.tables import PlanTables, put_network
from asmdnn.files import replace_file
from asmdnn.memory.allocation import within_memory
from asmdnn.network.arrays import Array
from asmdnn.network.calls.running import WEIGHTS
from asmdnn.network.compiled import CompiledSegment, packed
from asmdnn.network.cuts import check_no_cuts
from asmdnn.network.network import Network
from asmdnn.planning.plan import Plan
from asmdnn.primitives.core.descriptor import PrimitiveDesc
from asmdnn.records import dataclass
from asmdnn.version import __version__

RUNTIME: Final = ("asmdnn_runtime.c", "asmdnn_runtime.h")
COMPILER: Final = "cc"


@dataclass(frozen=True, eq=False)
class Exported:
    """What is written.  name: of files and symbols; title: what it is, in words; isa: the level that it was planned
    for; weights: of a network, u8[bytes]; bound: other tensors of the plan that are constant."""

    name: str
    title: str
    isa: str
    threads: int
    plan: Plan
    interface: CInterface
    weights: Array | None
    bound: Mapping[str, Array]


@within_memory
def export_c(source: Network | PrimitiveDesc, folder: str | PathLike[str], name: str = "") -> list[Path]:
    """Write a network, or a primitive, for programs in C: NAME.o, NAME.h, and the runtime as source, asmdnn_runtime.c
    and .h; also libNAME.so where there is a compiler `cc`.  A process that uses them has nothing of Python.

    source: a network that is native throughout, with fixed dims and without state, or a primitive's descriptor.  It is
    exported for its engine's level, on any machine, and for every number of threads up to its engine's.
    folder: is created.  name: of files and symbols, a name of C; default: that of the graph, or "primitive".

    Returns the paths of the files.  Raises InvalidArguments, also where the folder cannot be written, Unimplemented for
    what C programs cannot pass or check.
    """
    if isinstance(source, Network):
        exported = of_segment(source, name)
    elif isinstance(source, PrimitiveDesc):
        exported = of_descriptor(source, name)
    else:
        raise InvalidArguments(f"source must be a Network or a PrimitiveDesc, not {shown(source)}")
    files = {f"{exported.name}.o": object_of(exported), f"{exported.name}.h": header_of(exported).encode()}
    files |= {file: Path(__file__).with_name("runtime").joinpath(file).read_bytes() for file in RUNTIME}
    try:
        directory = Path(folder)
        directory.mkdir(parents=True, exist_ok=True)
        for file, content in files.items():
            replace_file(directory / file, content)
    except (OSError, ValueError, TypeError) as error:  # ValueError: a null character in the path
        reason = reason_of(error)
        raise InvalidArguments(f"the folder {shown(folder)} cannot be written ({reason}): name another one") from None
    return [directory / file for file in files] + linked(directory, exported.name)


def of_segment(net: Network, name: str) -> Exported:
    """Raises InvalidArguments for a network that cannot be one native call."""
    if net.is_open:
        raise InvalidArguments("the network has open dims, and C programs pass fixed ones: export net.at(shapes)")
    planned = net.planned("exported")
    check_no_cuts(planned.runnable.cuts)
    if planned.model.states:
        states = ", ".join(state.name for state in planned.model.states)
        raise InvalidArguments(f"the network keeps {states} between calls: make them inputs and outputs to export it")
    part = planned.runnable.native
    if not planned.runnable.parts:
        raise InvalidArguments(
            "a network that computes nothing cannot be exported: its outputs are inputs or constants"
        )
    if part is None:
        said = "; ".join(f"{label} ({reason})" for label, reason in planned.refused.items())
        raise InvalidArguments(f"nodes in numpy cannot be exported, leave them to the caller: {said}")
    (segment,) = planned.segments
    assert isinstance(segment, CompiledSegment)
    interface = of_network(planned.runnable, part, segment.plan)
    chosen = checked_name(name) if not isinstance(name, str) or name else identifier(planned.model.body.name)
    title, engine = f"The network {planned.runnable.title}", planned.engine
    weights = packed(segment).whole()
    return Exported(
        chosen, title, engine.isa, engine.threads, plan=segment.plan, interface=interface, weights=weights, bound={}
    )  # fmt: skip


def of_descriptor(pd: PrimitiveDesc, name: str) -> Exported:
    chosen = checked_name(name) if not isinstance(name, str) or name else "primitive"
    bound = {tensor: memory.array for tensor, memory in pd.attr.data().items()}
    title = f"The primitive {pd.implementation}, {pd.desc}"
    interface = of_primitive(pd, bound)
    return Exported(
        chosen, title, pd.engine.isa, pd.threads, plan=pd.plan, interface=interface, weights=None, bound=bound
    )  # fmt: skip


def object_of(exported: Exported) -> bytes:
    """The object file."""
    image, plan = ObjectImage(), exported.plan
    data = {name: image.array(array) for name, array in (*plan.constants.items(), *exported.bound.items())}
    if exported.weights is not None:
        data[WEIGHTS] = image.blob(exported.weights)
    place, size = put_network(PlanTables(image, plan, exported.threads), exported.name, exported.interface, data)
    return image.file(f"{exported.name}_network", place, size)


def header_of(exported: Exported) -> str:
    threads = f"1 to {exported.threads} threads" if exported.threads > 1 else "one thread"
    about = [*textwrap.wrap(exported.title, 110), f"For {exported.isa}, {threads}.  Made by asmdnn {__version__}."]
    return header(exported.name, about, exported.interface.tensors)


def linked(directory: Path, name: str) -> list[Path]:
    """The shared library, if there is a compiler.  Raises InvalidArguments if that fails."""
    compiler = shutil.which(COMPILER)
    if compiler is None:
        return []
    library = f"lib{name}.so"
    words = ["-O2", "-shared", "-fPIC", "-pthread", "-Wl,-Bsymbolic", "-o", library, RUNTIME[0], f"{name}.o"]
    done = subprocess.run([compiler, *words], cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        said = " ".join(done.stderr.split())
        raise InvalidArguments(f"{COMPILER} cannot make {library}, the other files are written: it says {said}")
    return [directory / library]
