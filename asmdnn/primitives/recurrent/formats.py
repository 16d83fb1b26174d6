"""The formats that the kernels of recurrent layers take: panels of weights, rows of everything else."""

from collections.abc import Mapping

from asmdnn.memory import MemoryDesc
from asmdnn.primitives.recurrent.description import GRUForward, RecurrentForward
from asmdnn.primitives.shapes.formats import row_major

PACKED = ("weights_layer", "weights_iter", "weights_projection")
FURTHEST_ROWS = 64  # a tile has fewer rows, and displacements in code are 32 bits
MAX_OFFSET = 2**31 - 1
PANEL_VECTORS = 2  # of weights_layer, which one product of all steps multiplies


def packed_tag(desc: RecurrentForward, name: str, lanes: int) -> str:
    """The format of packed weights.

    weights_layer: panels of two vectors, which are what the product of all steps takes: of two gates of a vector of
    hidden channels, or of two vectors of a gate where gates are odd.  weights_iter: panels of one vector of hidden
    channels, with rows of all gates side by side, since a step multiplies them at once; but for a GRU, whose candidate
    is multiplied apart.
    """
    if name == "weights_layer":
        return f"abEdc{PANEL_VECTORS * lanes}e" if desc.GATES % 2 else f"abEDc{PANEL_VECTORS}d{lanes}e"
    if name == "weights_projection":
        return f"abDc{lanes}d"
    return f"abdEc{lanes}e" if isinstance(desc, GRUForward) else f"abEcd{lanes}e"


def packed_desc(desc: RecurrentForward, name: str, lanes: int) -> MemoryDesc:
    """Packed weights of that name."""
    tensor = desc.tensors()[name]
    return MemoryDesc(tensor.dims, tensor.dtype, packed_tag(desc, name, lanes))


def passed_formats(desc: RecurrentForward, lanes: int) -> dict[str, MemoryDesc]:
    """The tensors as a caller passes them: what is `any` is packed, or row-major."""
    return {
        name: tensor
        if not tensor.is_any
        else packed_desc(desc, name, lanes)
        if name in PACKED
        else row_major(tensor.dims, tensor)
        for name, tensor in desc.tensors().items()
    }


def kernel_formats(desc: RecurrentForward, passed: Mapping[str, MemoryDesc], lanes: int) -> dict[str, MemoryDesc]:
    """The tensors as kernels take them: others than these are copied by reorders."""
    found = {}
    for name, tensor in passed.items():
        if name in PACKED:
            found[name] = packed_desc(desc, name, lanes)
        else:
            found[name] = tensor if takes(name, tensor) else row_major(tensor.dims, tensor)
    return found


def takes(name: str, tensor: MemoryDesc) -> bool:
    """Whether kernels can take a tensor of rows: dense, near one another, and of dst_layer step behind step."""
    if tensor.inner_blocks or (tensor.strides[-1] != 1 and tensor.dims[-1] > 1):
        return False
    if FURTHEST_ROWS * max(tensor.strides_bytes) > MAX_OFFSET:
        return False
    *outer, row, channels = tensor.dims
    reach = (row - 1) * tensor.strides[-2] + channels if row > 1 else channels
    return name != "dst_layer" or not outer or outer[0] == 1 or tensor.strides[0] >= reach
