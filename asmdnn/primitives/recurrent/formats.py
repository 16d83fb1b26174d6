"""The formats that the kernels of recurrent layers take: panels of weights, rows of everything else."""

from collections.abc import Mapping

from asmdnn.isa.dot import Types
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.memory import MemoryDesc
from asmdnn.memory.summed import SummedDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.primitives.recurrent.description import GRUForward, RecurrentForward
from asmdnn.primitives.recurrent.factors import WEIGHTS as PACKED
from asmdnn.primitives.recurrent.qparams import ROWS, is_dynamic
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.types import DataType, f32, s8

FURTHEST_ROWS = 64  # a tile has fewer rows, and displacements in code are 32 bits
BUT_CHANNELS = 0b11011  # the mask of weights' dims that sums have: all but those that are summed
PANEL_VECTORS = 2  # of weights_layer, which one product of all steps multiplies


def packed_tag(desc: RecurrentForward, name: str, lanes: int, group: int = 1) -> str:
    """The format of packed weights, with so many neighbours of k side by side for each column.

    weights_layer: panels of two vectors, which are what the product of all steps takes: of two gates of a vector of
    hidden channels, or of two vectors of a gate where gates are odd.  weights_iter: panels of one vector of hidden
    channels, with rows of all gates side by side, since a step multiplies them at once; but for a GRU, whose candidate
    is multiplied apart.
    """
    k, inner = ("C", f"{group}c") if group > 1 else ("c", "")
    if name == "weights_layer":
        panel = f"abEd{k}{PANEL_VECTORS * lanes}e" if desc.GATES % 2 else f"abED{k}{PANEL_VECTORS}d{lanes}e"
    elif name == "weights_projection":
        panel = f"abD{k}{lanes}d"
    else:
        panel = f"abdE{k}{lanes}e" if isinstance(desc, GRUForward) else f"abE{k}d{lanes}e"
    return panel + inner


def packed_desc(desc: RecurrentForward, name: str, lanes: int, group: int = 1) -> MemoryDesc:
    """Packed weights of that name; those of bytes with their sums after them."""
    tensor = desc.tensors()[name]
    packed = MemoryDesc(tensor.dims, tensor.dtype, packed_tag(desc, name, lanes, group))
    return SummedDesc(packed, BUT_CHANNELS) if tensor.dtype == s8 else packed


def passed_formats(desc: RecurrentForward, lanes: int, group: int = 1) -> dict[str, MemoryDesc]:
    """The tensors as a caller passes them: what is `any` is packed, or row-major."""

    def passed(name: str, tensor: MemoryDesc) -> MemoryDesc:
        if not tensor.is_any:
            return tensor
        return packed_desc(desc, name, lanes, group) if name in PACKED else row_major(tensor.dims, tensor)

    return {name: passed(name, tensor) for name, tensor in desc.tensors().items()}


def kernel_formats(
    desc: RecurrentForward, passed: Mapping[str, MemoryDesc], lanes: int, types: Types
) -> dict[str, MemoryDesc]:
    """The tensors as kernels take them: others than these are copied by reorders."""
    found = {}
    for name, tensor in passed.items():
        dtype = handed_type(desc, types) if name in ROWS else f32
        if name in PACKED:
            found[name] = packed_desc(desc, name, lanes, types.group)
        else:
            plain = MemoryDesc(tensor.dims, dtype, row_tag(tensor))
            is_rounded = name == "src_layer" and is_dynamic(desc)  # from its first element to its last
            is_taken = tensor == plain if is_rounded else takes(name, tensor, dtype)
            found[name] = tensor if is_taken else plain
    return found


def handed_type(desc: RecurrentForward, types: Types) -> DataType:
    """Of layers' rows and h as steps hand them on: the type that is multiplied, unless they are rounded in front."""
    return f32 if is_dynamic(desc) else types.src


def row_tag(tensor: MemoryDesc) -> str:
    return LETTERS[: tensor.ndims]


def takes(name: str, tensor: MemoryDesc, dtype: DataType) -> bool:
    """Whether kernels can take a tensor of rows: dense, near one another, and of dst_layer step after step."""
    if tensor.dtype != dtype or tensor.inner_blocks or (tensor.strides[-1] != 1 and tensor.dims[-1] > 1):
        return False
    if FURTHEST_ROWS * max(tensor.strides_bytes) > MAX_OFFSET:
        return False
    *outer, row, channels = tensor.dims
    reach = (row - 1) * tensor.strides[-2] + channels if row > 1 else channels
    return name != "dst_layer" or not outer or outer[0] == 1 or tensor.strides[0] >= reach
