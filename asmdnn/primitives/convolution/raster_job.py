"""What products of a convolution, or of a deconvolution's parts, are planned of: all its images, one, or some rows."""

from collections.abc import Mapping

from asmdnn.memory import MemoryDesc
from asmdnn.primitives.convolution.description import ConvolutionDesc
from asmdnn.primitives.convolution.raster import Parts
from asmdnn.primitives.products.matrices import Matrix
from asmdnn.primitives.products.target import Target
from asmdnn.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class RasterJob:
    """desc: with formats of kernels.  read: what post-ops read.  start: of sums; bias: as a tensor that broadcasts to
    dst, if sums start from it.  lowers: windows are copied to rows of a matrix first (lowered.py)."""

    desc: ConvolutionDesc
    parts: Parts
    read: Mapping[str, MemoryDesc]
    start: Matrix | None
    bias: MemoryDesc | None
    target: Target
    lowers: bool = False

    def of_one_image(self) -> "RasterJob":
        """The same for the first image alone."""
        desc = self.desc.with_formats({name: first_image(getattr(self.desc, name)) for name in ("src", "dst")})
        return replace(self, desc=desc, read={name: first_image(tensor) for name, tensor in self.read.items()})

    @property
    def results(self) -> dict[str, MemoryDesc]:
        """dst, and what post-ops read."""
        return {"dst": self.desc.dst, **self.read}

    def image_bytes(self) -> dict[str, tuple[int, ...]]:
        """From an image to the next one, of tensors that have several."""
        tensors = {"src": self.desc.src, **self.results}
        return {name: (x.strides_bytes[0],) for name, x in tensors.items() if x.dims[0] > 1}


def first_image(tensor: MemoryDesc) -> MemoryDesc:
    return tensor.submemory((1, *tensor.dims[1:]), (0,) * tensor.ndims)


def some_rows(tensor: MemoryDesc, first: int, rows: int) -> MemoryDesc:
    """Those of the first image and plane; the whole row of a tensor that has one."""
    channels, *outer, down, along = tensor.dims[1:]
    if down == 1:
        first, rows = 0, 1
    ahead = (0,) * (2 + len(outer))
    return tensor.submemory((1, channels, *[1] * len(outer), rows, along), (*ahead, first, 0))
