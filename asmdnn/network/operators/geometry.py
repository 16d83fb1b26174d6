"""What attributes say of windows that slide along spatial axes: of convolutions and pooling."""

from asmdnn.definitions.windows import Sizes, SlidingWindow
from asmdnn.network.graph import Node


def window_of(node: Node, sizes: Sizes, kernel: Sizes) -> SlidingWindow:
    """What the attributes say about inputs of these sizes.  Raises ValueError."""
    axes = len(sizes)
    strides, dilations = (tuple(node.get(name, (1,) * axes)) for name in ("strides", "dilations"))
    pads, mode = tuple(node.get("pads", (0,) * 2 * axes)), node.get("auto_pad", "NOTSET")
    if not (len(kernel) == len(strides) == len(dilations) == axes and len(pads) == 2 * axes):
        raise ValueError(f"kernel {kernel}, strides {strides}, dilations {dilations} and pads {pads} for {axes} axes")
    check_window(kernel, strides, dilations)
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        pads = same_pads(sizes, kernel, strides, dilations, mode == "SAME_UPPER")
    elif mode == "VALID":
        pads = (0,) * 2 * axes
    return SlidingWindow(tuple(kernel), strides, dilations, pads[:axes], pads[axes:])


def check_window(kernel: Sizes, strides: Sizes, dilations: Sizes) -> None:
    """Raise ValueError for what is no window."""
    if min((*strides, *dilations, *kernel), default=1) < 1:
        raise ValueError(f"kernel {kernel}, strides {strides} and dilations {dilations} must be at least 1")


def same_pads(sizes: Sizes, kernel: Sizes, strides: Sizes, dilations: Sizes, upper: bool) -> Sizes:
    """Padding that makes ceil(size / stride) outputs; what is odd goes after, or in front."""
    totals = [
        max(0, (-(-n // s) - 1) * s + (k - 1) * d + 1 - n)
        for n, k, s, d in zip(sizes, kernel, strides, dilations, strict=True)
    ]
    less, more = [t // 2 for t in totals], [t - t // 2 for t in totals]
    return (*less, *more) if upper else (*more, *less)
