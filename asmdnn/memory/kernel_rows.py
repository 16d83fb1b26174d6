"""The format of weights whose groups, which a multiply takes, are along a row of the kernel, channels innermost."""

from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory.desc import MemoryDesc
from asmdnn.memory.layout import naturals
from asmdnn.memory.tags import LETTERS
from asmdnn.memory.transformed import TransformedDesc
from asmdnn.records import dataclass
from asmdnn.types import HALF_FLOATS, DataType, s8

GROUP_BYTES: Final = 4  # that a multiply takes


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class KernelRowsDesc(TransformedDesc):
    """Weights (o, c, [kd, [kh,]] kw) of bf16, f16 or s8, the kw * c elements of a row of the kernel one after another,
    channels innermost, as src has them with channels last: groups of two, of s8 of four, may have those of several
    positions.

    `storage` is what lies in memory: (o, [kd, [kh,]] kw * c) in panels of output channels, their number of lanes
    `panel`: "AbC16a2c", of s8 "AbC16a4c".  A reorder makes it of any format, none brings it back; elements are not
    viewed or copied.
    outputs: the dim of output channels, which is 1 for the gradient of a deconvolution's data.
    Raises InvalidArguments.
    """

    panel: int
    outputs: int

    def __init__(self, dims: tuple[int, ...], dtype: DataType, panel: int, outputs: int = 0) -> None:
        dims, (panel, outputs) = naturals("dims", dims), naturals("panel and outputs", (panel, outputs))
        if dtype not in (*HALF_FLOATS, s8) or not 3 <= len(dims) <= 5 or not panel or outputs > 1:
            raise InvalidArguments(
                f"weights {shown(dtype)} {shown(dims)} have no rows in panels of {panel} of dim {outputs}: bf16, "
                "f16 and s8 of 3 to 5 dims have, of dim 0 or 1"
            )
        *outer, width = dims[2:]
        row = LETTERS[1 + len(outer)]
        tag = f"A{LETTERS[1 : 1 + len(outer)]}{row.upper()}{panel}a{GROUP_BYTES // dtype.size_bytes}{row}"
        storage = MemoryDesc((dims[outputs], *outer, width * dims[1 - outputs]), dtype, tag)
        padded = list(dims)
        padded[outputs] = storage.padded_dims[0]
        put = object.__setattr__
        put(self, "dims", dims)
        put(self, "dtype", dtype)
        put(self, "strides", (storage.strides[0], 0, *storage.strides[1:]))
        put(self, "inner_blocks", ((outputs, panel),))
        put(self, "padded_dims", tuple(padded))
        put(self, "offset0", 0)
        put(self, "is_any", False)
        put(self, "panel", panel)
        put(self, "outputs", outputs)
        put(self, "_storage", storage)
        put(self, "_extent", storage.size_bytes // dtype.size_bytes)
        put(self, "_key", ("rows", dims, outputs, *storage._key))

    why: ClassVar[str] = "groups of it span positions"

    @property
    def adjoint(self) -> "KernelRowsDesc":
        """The same storage as that of weights with input and output channels exchanged."""
        first, second, *kernel = self.dims
        return KernelRowsDesc((second, first, *kernel), self.dtype, self.panel, 1 - self.outputs)

    @property
    def tag(self) -> str:
        """The order of the dims, after the form: "rows:Acdb16a"; pairs of "db" are innermost."""
        out, kernel, into = self._order
        return f"rows:{out.upper()}{kernel}{into}{self.panel}{out}"

    @property
    def may_overlap(self) -> bool:
        return False

    @property
    def plain(self) -> MemoryDesc:
        """The elements in the order of `storage`, not yet in panels: channels last."""
        return MemoryDesc(self.dims, self.dtype, "".join(self._order))

    @property
    def rows(self) -> MemoryDesc:
        """`plain`, with the dims of `storage`."""
        dims = self.storage.dims
        return MemoryDesc(dims, self.dtype, LETTERS[: len(dims)])

    @property
    def _order(self) -> tuple[str, str, str]:
        """The letters of output channels, of the kernel's dims, and of input channels."""
        return LETTERS[self.outputs], LETTERS[2 : len(self.dims)], LETTERS[1 - self.outputs]

    def _stored(self, array: NDArray[Any]) -> NDArray[Any]:
        """Channels last."""
        order = (self.outputs, *range(2, array.ndim), 1 - self.outputs)
        return np.transpose(array, order).reshape(self.storage.dims)
