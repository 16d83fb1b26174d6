"""The format of weights that Winograd's convolution reads: transformed, so that no element is where it was."""

from functools import cache
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory.desc import MemoryDesc
from asmdnn.memory.layout import naturals
from asmdnn.memory.transformed import GROUPS, TransformedDesc
from asmdnn.records import dataclass
from asmdnn.types import DataType, f32

TAPS: Final = 3  # along an axis
HALF_BITS, HALF_UNIT = 16, 1 << 15  # that an upper half leaves out of f32; half of the least that it keeps
A, B = 0.5**0.5, 2**0.5
G: Final = {  # for points 0, 1, -1, infinity, and 0, A, -A, B, -B, infinity
    2: ((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1)),
    4: (
        (1, 0, 0), (-2 / 3, -2 / 3 * A, -1 / 3), (-2 / 3, 2 / 3 * A, -1 / 3),
        (1 / 6, 1 / 6 * B, 1 / 3), (1 / 6, -1 / 6 * B, 1 / 3), (0, 0, 1),
    ),
}  # fmt: skip
AT_ONCE: Final = 1024  # pairs of channels that are transformed at a time: float64 of them stays in L2


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class WinogradDesc(TransformedDesc):
    """Weights (o, c, 3, 3), transformed for tiles of m x m results: U = G g G^T for every o and c, in f32 or rounded to
    bf16; or of groups, (g, o / g, c / g, 3, 3).

    `storage` is what lies in memory: (o, c, m + 2, m + 2) in panels of output channels, their number of lanes `panel`,
    frequency by frequency, with a row of the panel for each input channel: "Acdb16a"; group after group, "aBdec16b";
    of bf16 for two of them, "AcdB16a2b".  It takes 16 / 9 (m = 2) or 4 times (m = 4) the elements of the weights.  A
    reorder makes it of any format, none brings it back; there are no elements to be viewed or copied.
    turned: for the gradient of data, a convolution with input and output channels exchanged and taps from the end:
    panels of input channels, U = G g' G^T of g'[c, o, r, s] = g[o, c, 2 - r, 2 - s].  Raises InvalidArguments.
    """

    m: int
    panel: int
    turned: bool

    def __init__(self, dims: tuple[int, ...], dtype: DataType, m: int, panel: int, turned: bool = False) -> None:
        dims = naturals("dims", dims)
        if m not in G or dtype not in GROUPS or len(dims) not in (4, 5) or dims[-2:] != (TAPS, TAPS):
            raise InvalidArguments(
                f"weights {dtype} {shown(dims)} have no form F({shown(m)}): f32, bf16 o x c x 3 x 3 have 2, 4"
            )
        tag = tag_of_panels(len(dims) == 5, panel, turned, GROUPS[dtype])
        storage = MemoryDesc((*dims[:-2], m + TAPS - 1, m + TAPS - 1), dtype, tag)
        put = object.__setattr__
        put(self, "dims", dims)
        put(self, "dtype", dtype)
        put(self, "strides", storage.strides)
        put(self, "inner_blocks", storage.inner_blocks)
        put(self, "padded_dims", (*storage.padded_dims[:-2], TAPS, TAPS))
        put(self, "offset0", 0)
        put(self, "is_any", False)
        put(self, "m", m)
        put(self, "panel", panel)
        put(self, "turned", bool(turned))
        put(self, "_storage", storage)
        put(self, "_extent", storage.size_bytes // dtype.size_bytes)
        put(self, "_key", ("winograd", m, bool(turned), *storage._key))

    @property
    def adjoint(self) -> "WinogradDesc":
        """The same storage as that of weights with input and output channels exchanged and taps turned."""
        *groups, out, into, rows, columns = self.dims
        return WinogradDesc((*groups, into, out, rows, columns), self.dtype, self.m, self.panel, not self.turned)

    why: ClassVar[str] = "its elements are transformed"

    @property
    def form(self) -> str:
        return f"winograd{self.m}{'turned' * self.turned}"

    def _stored(self, array: NDArray[Any]) -> NDArray[Any]:
        """What `storage` holds of weights `array`, upper halves of f32 as words: computed in float64."""
        if self.dtype != f32:
            array = (array.astype(np.uint32) << HALF_BITS).view(np.float32)
        taps = np.asarray(array, np.float32).reshape(-1, TAPS * TAPS)[:, :: -1 if self.turned else 1]
        size = self.m + TAPS - 1
        found = np.empty((len(taps), size * size), np.float32)
        for begin in range(0, len(taps), AT_ONCE):
            some = slice(begin, begin + AT_ONCE)
            g = np.array(taps[some].T, np.float64, order="C").reshape(TAPS, TAPS, -1)
            both = transformed(transformed(g, self.m).swapaxes(0, 1), self.m)  # of columns first
            found[some] = both.swapaxes(0, 1).reshape(size * size, -1).T
        found += 0  # no -0, which negative coefficients make of zeros
        found = found.reshape(*array.shape[:-2], size, size)
        return found if self.dtype == f32 else upper_halves(found)


def tag_of_panels(has_groups: bool, panel: int, turned: bool, together: int) -> str:
    """Of a storage: panels of output channels, or of input channels where weights are turned; so many of the others are
    together."""
    groups, out, into, taps = ("a", "b", "c", "de") if has_groups else ("", "a", "b", "cd")
    out, into = (into, out) if turned else (out, into)
    if together == 1:
        return f"{groups}{out.upper()}{taps}{into}{panel}{out}"
    return f"{groups}{out.upper()}{taps}{into.upper()}{panel}{out}{together}{into}"


def upper_halves(numbers: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Finite numbers rounded to nearest even."""
    bits = numbers.view(np.uint32)
    return ((bits + (HALF_UNIT - 1) + (bits >> HALF_BITS & 1)) >> HALF_BITS).astype(np.uint16)


def transformed(taps: NDArray[np.float64], m: int) -> NDArray[np.float64]:
    """G times [tap, ...].  Sums go from the ends to the middle tap, as kernels do, so that bits are equal."""
    rows = []
    for factors in weights_matrix(m):
        first, *others = [factors[k] * taps[k] for k in (0, 2, 1) if factors[k]]
        rows.append(sum(others, start=first))
    return np.array(rows)


@cache
def weights_matrix(m: int) -> NDArray[np.float64]:
    """G: each row evaluates the polynomial of the taps at a point, divided by the differences to the others."""
    return np.array(G[m])
