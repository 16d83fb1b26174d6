"""Networks and packs from files; imported without planners, which a network from a pack does not need."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Protocol

from asmdnn.errors import InvalidArguments, shown
from asmdnn.forking import importing
from asmdnn.jit import image_file
from asmdnn.jit.packs import Pack
from asmdnn.memory.allocation import within_memory
from asmdnn.network.model_request import ModelRequest
from asmdnn.network.narrow.storage import limit_of, precision_of
from asmdnn.network.network import Network
from asmdnn.network.onnx.wire import serialized
from asmdnn.primitives.core.engine import Engine, engine_asking
from asmdnn.runtime.threads import check_thread_count, max_threads

SHA256 = re.compile("[0-9a-fA-F]{64}")


@within_memory
def load_onnx(
    path: "str | PathLike[str] | bytes | SerializesItself",
    shapes: Mapping[str, Any] | None = None,
    *,
    constants: Mapping[str, Any] | None = None,
    engine: Engine | None = None,
    fallback: str | None = None,
    precision: str = "f32",
    io: str = "file",
    keep_f32: Sequence[str] = (),
    max_error: float | None = None,
    feeds: Mapping[str, Any] | None = None,
    state: Mapping[str, str] | None = None,
    seed: str | None = None,
    bounds: Mapping[str, int] | None = None,
    deterministic: Literal[False, True, "batch"] = False,
) -> Network:
    """The network in an ONNX file, in its bytes or in an onnx.ModelProto, of operator sets 7 to 28.

    shapes: dims of inputs by name: numbers, names, or `Dim`s with a range.  Where dims stay open, the network is an
    OpenNetwork, which plans for a shape when it comes first.  constants: data of inputs that is always the same, such
    as a sampling rate; it chooses branches, and is no input any more.  Nodes without a kernel are refused, all at once
    with their reasons; with fallback="numpy" they are computed by numpy between native parts.  Networks are kept in the
    cache on disk; one that is found there is planned again only when it is looked at in a way that needs it.
    precision: "f32"; "bf16" allows kernels to multiply and to store such numbers where that is expected to be faster,
    which rounds to 8 bits, and changes nothing on a CPU that would have to make f32 of them.  "f16", of 11 bits, stores
    weights of one or two rows and values that are only moved or mapped, beyond L2; "fast" is whichever the CPU takes
    faster.  io: the type of float inputs and outputs: "file", as the model declares them, "f32", "bf16" or "f16".
    Values that a file declares as f16 or bf16 are f32 inside in any case, and rounded where they leave the network.
    keep_f32: names of nodes, or of their results, that compute in f32 all the same.
    max_error: keep more in f32, largest error first, until outputs are within this share of their largest value of
    definitions in float64 (`net.precision` says what).  feeds: inputs by name for it; the network is native throughout.
    state: outputs that become inputs of the next call, such as {"present.0": "past.0"}: they start as zeros, stay in
    `net.state`, are written in place, and are neither passed nor returned.  seed: a name for another input, an integer,
    by which random nodes draw: equal ones have equal bits, whatever the threads and the level, and another one plans
    nothing.  Dropout whose training_mode is true draws, too.  bounds: how many places results of NonZero, Compress and
    Unique may have, such as {"at": 64}: native then is what computes each place alone; a call with more is refused.
    deterministic: "batch" asks for an item's outputs in the bits that it has alone, as `Engine(deterministic="batch")`.
    Raises InvalidArguments for what is no intact model, shapes that do not fit it, errors that f32 has; Unimplemented.
    """
    asked = ModelRequest(
        source=serialized(path), shapes=shapes, constants=constants, engine=engine_asking(engine, deterministic),
        fallback=fallback, precision=precision_of(precision, keep_f32, io), limit=limit_of(max_error, feeds),
        state=state, seed=seed, bounds=bounds,
    )  # fmt: skip
    if (key := asked.key()) is None:
        return asked.network()
    return asked.kept_network(key) or asked.network_to_keep(key)


class SerializesItself(Protocol):
    """An onnx.ModelProto."""

    def SerializeToString(self) -> bytes: ...


@within_memory
def load_network(
    path: str | PathLike[str], threads: int = 0, *, sha256: str = "", further: Callable[[], Network] | None = None
) -> Network:
    """The network that `Network.save` wrote to a file: as `load_pack`, which see, but nothing else than a network.

    further: what makes the network that plans shapes of open dims which the file does not have.
    Raises InvalidArguments for a pack of kernels, too.
    """
    where = place_of(path, sha256)
    if where.is_file() and not image_file.is_image(where):
        raise InvalidArguments(f"the pack {shown(str(where))} is no saved network: make one with Network.save.")
    return network_at(where, threads, sha256, further)


@within_memory
def load_pack(
    path: str | PathLike[str], threads: int = 0, *, sha256: str = "", further: Callable[[], Network] | None = None
) -> Pack | Network:
    """What is in the pack at `path`: a Network that `Network.save` wrote, ready to run; or kernels and plans that
    `write_pack` or `asmdnn pack` wrote, which are from now on taken before the disk cache and the planners.

    threads: of a network; default the OpenMP runtime's count.  sha256: of the whole file, in hexadecimal, as sha256sum
    says it; a file with another one is refused before anything in it is used.

    The file is checked as a whole before any of it is used: its checksum, its format, that this version of the package
    made it, and that what is in it makes sense.  A network's file is mapped, its weights are used where they lie; who
    replaces it puts a new file in its place.  Other packs are read, stay loaded, and change nothing when they are
    loaded again.  Any thread may call this at any time.  Only load packs that you trust: they are code.
    An OpenNetwork's file has the shapes that it held; what is loaded is one, too, and refuses others.  further: what
    makes the network of the same model, such as functools.partial(load_onnx, "model.onnx"): it is called when a shape
    comes first that the file does not have, and plans it.
    Raises InvalidArguments with the reason; Unimplemented for a network of an ISA level that cannot be executed here.
    """
    where = place_of(path, sha256)
    if image_file.is_image(where):
        return network_at(where, threads, sha256, further)
    if further is not None:
        raise InvalidArguments(f"further is for networks with open dims, and {str(where)!r} has kernels: leave it out")
    with importing():
        from asmdnn.primitives.core.packing import load_pack as load_kernels

    return load_kernels(where, sha256)


def place_of(path: Any, sha256: Any) -> Path:
    """Raises InvalidArguments for what is no path or no sha256."""
    if not isinstance(sha256, str) or (sha256 and not SHA256.fullmatch(sha256)):
        raise InvalidArguments(f"sha256 must be 64 hexadecimal digits, not {shown(sha256)}")
    try:
        return Path(path).absolute()
    except Exception:  # whatever the caller's object does
        raise InvalidArguments(f"path must be the path of a pack, not {shown(path)}") from None


def network_at(where: Path, threads: int, sha256: str, further: Callable[[], Network] | None = None) -> Network:
    """The network in a file of one."""
    if further is not None and not callable(further):
        raise InvalidArguments(f"further must be a function that gives a network, or None, not {shown(further)}")
    with importing():
        from asmdnn.network.packs.saved import saved

    count = max_threads() if type(threads) is int and threads == 0 else check_thread_count(threads)
    image = image_file.read(where, sha256)
    if "shapes" in image.text:
        with importing():
            from asmdnn.network.packs.saved_shapes import open_network

        again = (network_at, (where, threads, sha256, further))
        return open_network(image, str(where), count, origin=again, further=further)
    if further is not None:
        raise InvalidArguments(f"further is for networks with open dims, and {str(where)!r} has none: leave it out")
    found = saved(image, str(where), count)
    return Network(
        partial(Engine, isa=found.runnable.isa, threads=count),  # type: ignore[arg-type]
        found,
        origin=(network_at, (where, threads, sha256)),
        states=found.states.arrays(),
    )
