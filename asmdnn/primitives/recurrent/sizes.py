"""The sizes of a recurrent layer, which its arguments have to agree on."""

from collections.abc import Mapping
from itertools import pairwise

from asmdnn.errors import InvalidArguments, counted, shown
from asmdnn.memory import MemoryDesc
from asmdnn.memory.formats import desc_words
from asmdnn.records import dataclass

NDIMS = {
    "src_layer": 3, "src_iter": 4, "src_iter_c": 4, "weights_layer": 5, "weights_iter": 5, "weights_peephole": 4,
    "weights_projection": 4, "bias": 4, "dst_layer": 3, "dst_iter": 4, "dst_iter_c": 4,
    "weights_layer_scales": 4, "weights_iter_scales": 4,
}  # fmt: skip
# What dims are called, by argument; gradients are called as what they are of.
LETTERS = {
    "weights_layer": "ldigo", "weights_iter": "ldigo", "weights_peephole": "ldgo", "weights_projection": "ldio",
    "bias": "ldgo", "src_layer": "tnc", "dst_layer": "tnc", "src_iter": "ldnc", "src_iter_c": "ldnc",
    "dst_iter": "ldnc", "dst_iter_c": "ldnc", "weights_layer_scales": "ldgo", "weights_iter_scales": "ldgo",
}  # fmt: skip


def letters_of(name: str, desc: MemoryDesc) -> str:
    """What the dims of an argument are called where its format is printed; nothing special where sequences are
    concatenated."""
    letters = LETTERS.get(name.removeprefix("diff_"), "")
    return letters if len(letters) == desc.ndims else ""


def words_of(tensors: Mapping[str, MemoryDesc]) -> str:
    """Arguments with their types, dims and formats."""
    return ", ".join(f"{name} {desc_words(desc, letters_of(name, desc))}" for name, desc in tensors.items())


@dataclass(frozen=True, slots=True)
class Sizes:
    """steps: T; sequences: N; rows: of src_layer and dst_layer, T * N unless sequences are concatenated; the rest as
    in description.py."""

    steps: int
    sequences: int
    rows: int
    layers: int
    directions: int
    src: int  # SLC
    state: int  # SIC
    gates: int
    hidden: int  # DHC
    out: int  # DIC
    dst: int  # DLC
    concatenated: bool


def check_lengths(lengths: object, src_layer: object) -> None:
    """Raise InvalidArguments unless lengths, if there are any, are a sequence's number of steps each."""
    if not isinstance(lengths, tuple) or not all(type(n) is int for n in lengths):
        raise InvalidArguments(f"lengths must be a tuple of integers, one for each sequence, not {shown(lengths)}")
    if not isinstance(src_layer, MemoryDesc):
        raise InvalidArguments(f"src_layer must be a MemoryDesc, not {shown(src_layer)}")
    short = [n for n in lengths if n < 1]
    if short:
        raise InvalidArguments(
            f"lengths has a {shown(short[0])}, every sequence has at least one step: leave empty ones out"
        )
    if src_layer.ndims == 2:
        check_concatenated(lengths, src_layer.dims[0])
    elif lengths and src_layer.ndims == 3:
        steps, sequences, _ = src_layer.dims
        if len(lengths) != sequences:
            raise InvalidArguments(
                f"lengths has {counted(len(lengths), 'number')}, src_layer has {sequences} sequences"
            )
        if max(lengths) > steps:
            raise InvalidArguments(
                f"lengths has a {shown(max(lengths))}, src_layer has {steps} steps: none can be longer"
            )


def check_concatenated(lengths: tuple[int, ...], rows: int) -> None:
    """Raise InvalidArguments unless sequences lie one after another, the longest first."""
    if not lengths:
        raise InvalidArguments("lengths is empty, a src_layer of two dims needs the length of every sequence")
    for i, (before, after) in enumerate(pairwise(lengths), 1):
        if after > before:
            raise InvalidArguments(
                f"lengths[{i}] is {shown(after)}, lengths[{i - 1}] {shown(before)}: "
                "sort concatenated sequences, the longest first"
            )
    if sum(lengths) != rows:
        raise InvalidArguments(f"lengths make {shown(sum(lengths))} rows together, src_layer has {rows}")


def sizes_of(
    tensors: Mapping[str, MemoryDesc], gates: int, direction: str, lengths: tuple[int, ...], keeps_width: bool
) -> Sizes:
    """keeps_width: the state after a step is as wide as the one before, as it always is with several steps.  Raises
    InvalidArguments for tensors of other numbers of dims, or of gates."""
    concatenated = tensors["src_layer"].ndims == 2
    for name, desc in tensors.items():
        wanted = NDIMS[name] - (concatenated and name.endswith("_layer") and not name.startswith("weights"))
        if desc.ndims != wanted:
            raise InvalidArguments(f"{name} has {counted(desc.ndims, 'dim')}, it must have {wanted}: {desc.dims}")
    layers, directions, src, found, hidden = tensors["weights_layer"].dims
    if found != gates:
        raise InvalidArguments(f"weights_layer has dims[3] of {found}, the cell has {counted(gates, 'gate')}")
    wanted = 2 if direction.startswith("bidirectional") else 1
    if directions != wanted:
        raise InvalidArguments(
            f"weights_layer has dims[1] of {directions}, {direction} has {counted(wanted, 'direction')}"
        )
    out = tensors["weights_projection"].dims[3] if "weights_projection" in tensors else hidden
    dst = out * (2 if direction == "bidirectional_concat" else 1)
    if concatenated:
        rows = tensors["src_layer"].dims[0]
        steps, sequences = lengths[0], len(lengths)
    else:
        steps, sequences = tensors["src_layer"].dims[:2]
        rows = steps * sequences
    if layers > 1 and src != dst:
        raise InvalidArguments(f"weights_layer has dims[2] of {src}, several layers need that of dst_layer: {dst}")
    state = out if keeps_width or steps > 1 else tensors["weights_iter"].dims[2]
    return Sizes(
        steps=steps,
        sequences=sequences,
        rows=rows,
        layers=layers,
        directions=directions,
        src=src,
        state=state,
        gates=gates,
        hidden=hidden,
        out=out,
        dst=dst,
        concatenated=concatenated,
    )


def argument_dims(sizes: Sizes, bias_rows: int) -> dict[str, tuple[int, ...]]:
    """The dims of all arguments, by name."""
    s = sizes
    both, of_layer = (s.layers, s.directions), (s.rows,) if s.concatenated else (s.steps, s.sequences)
    return {
        "src_layer": (*of_layer, s.src),
        "src_iter": (*both, s.sequences, s.state),
        "src_iter_c": (*both, s.sequences, s.hidden),
        "weights_layer": (*both, s.src, s.gates, s.hidden),
        "weights_iter": (*both, s.state, s.gates, s.hidden),
        "weights_layer_scales": (*both, s.gates, s.hidden),
        "weights_iter_scales": (*both, s.gates, s.hidden),
        "weights_peephole": (*both, 3, s.hidden),
        "weights_projection": (*both, s.hidden, s.out),
        "bias": (*both, bias_rows, s.hidden),
        "dst_layer": (*of_layer, s.dst),
        "dst_iter": (*both, s.sequences, s.out),
        "dst_iter_c": (*both, s.sequences, s.hidden),
    }


def check_tensors(tensors: Mapping[str, MemoryDesc], sizes: Sizes, bias_rows: int) -> None:
    """Raise InvalidArguments unless all dims are those that the sizes make."""
    wanted = argument_dims(sizes, bias_rows)
    for name, desc in tensors.items():
        if 0 in desc.dims:
            raise InvalidArguments(f"{name} has dims {desc.dims}, none may be 0")
        if desc.dims != wanted[name]:
            raise InvalidArguments(f"{name} has dims {desc.dims}, the other arguments make it {wanted[name]}")
