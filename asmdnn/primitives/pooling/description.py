"""The description of a forward pooling, validated at once."""

from math import prod

from asmdnn.errors import InvalidArguments
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.numbers import check_alg
from asmdnn.primitives.convolution.description import AXES
from asmdnn.primitives.pooling.windows import WindowRun, adaptive_runs, axis_runs
from asmdnn.primitives.shapes.tensors import check_tensor
from asmdnn.primitives.shapes.windows import MAX_SIZE, sizes_of
from asmdnn.records import dataclass
from asmdnn.types import PoolingAlgorithm, s32, u8

MAX, INCLUDE, EXCLUDE = ALGORITHMS = ("max", "avg_include_padding", "avg_exclude_padding")
MOST_POSITIONS = 256  # of a window, which u8 counts
FIELDS = {"strides": (1, 1), "dilations": (0, 0), "padding_l": (0, 0), "padding_r": (0, 0)}  # least, default


def check_tensors(src: MemoryDesc, dst: MemoryDesc, indices: MemoryDesc | None, alg: str) -> None:
    """Ranks, batch, channels, and what indices must be.  Raises InvalidArguments."""
    check_tensor("src", src)
    check_tensor("dst", dst)
    if not 3 <= src.ndims <= 5:
        raise InvalidArguments(f"src must have 3, 4 or 5 dims, not {src.ndims}: {src.dims}")
    if dst.ndims != src.ndims or dst.dims[:2] != src.dims[:2]:
        raise InvalidArguments(f"dst has dims {dst.dims}, images and channels must be those of src: {src.dims}")
    if indices is None:
        return
    check_tensor("indices", indices)
    if alg != MAX:
        raise InvalidArguments(f"indices are of max pooling, alg is {alg}")
    if indices.dims != dst.dims or indices.dtype not in (s32, u8):
        raise InvalidArguments(f"indices is {indices}, it must be s32 or u8 of dst's dims {dst.dims}")
    if prod(src.dims[2:]) > MAX_SIZE:
        raise InvalidArguments(f"src has {prod(src.dims[2:])} elements in a plane, s32 cannot count so many")


@dataclass(frozen=True, slots=True)
class PoolingForward:
    """dst[n, c, y, x] = max or mean of src[n, c, i, j] over the window i = y*sh + r*(dh+1) - pt, r < kh, and so on.

    alg: "max", "avg_include_padding" (the padding counts as zeros), "avg_exclude_padding" (only src counts).
    src, dst: (n, c, [d, [h,]] w), any formats; kernel: positions for each axis, outermost first; strides >= 1 (default
    1), dilations >= 0 (0 is dense, the default), padding_l and padding_r >= 0 (default 0).  Sizes of dst are those of
    whole windows in the padded src, or one more for a last window that ends after it (ceil mode): what is after the
    padding counts for nothing.  A window in padding alone has the mean 0, and -infinity, or the least integer, as its
    largest number.  indices: s32 or u8 of dst's dims, for max: where the first maximum of each window is, as the
    number of its element in the plane, row by row, as torch counts.  u8: as the number of its position in the window,
    row by row, as in oneDNN's workspace; a window has at most 256 positions then, those in the padding included.
    NaN is passed over by max, as in oneDNN; a window of NaN alone gives -infinity.
    Raises InvalidArguments if sizes do not fit, and for a window in padding alone whose mean would be 0 / 0, or whose
    maximum has no place.
    """

    alg: PoolingAlgorithm
    src: MemoryDesc
    dst: MemoryDesc
    kernel: tuple[int, ...]
    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    padding_l: tuple[int, ...] = ()
    padding_r: tuple[int, ...] = ()
    indices: MemoryDesc | None = None

    def __post_init__(self) -> None:
        check_alg("PoolingForward.alg", self.alg, ALGORITHMS)
        check_tensors(self.src, self.dst, self.indices, self.alg)
        axes = self.src.ndims - 2
        object.__setattr__(self, "kernel", sizes_of("kernel", self.kernel, axes, 1))
        for name, (least, default) in FIELDS.items():
            value = getattr(self, name)
            if type(value) is tuple and not value:
                value = (default,) * axes
            object.__setattr__(self, name, sizes_of(name, value, axes, least))
        for axis, name in enumerate(AXES[-axes:]):
            self._check_axis(axis, name)
        if self.indices is not None and self.indices.dtype == u8 and prod(self.kernel) > MOST_POSITIONS:
            raise InvalidArguments(
                f"kernel {self.kernel} has more than {MOST_POSITIONS} positions: indices must be s32"
            )

    def _check_axis(self, axis: int, name: str) -> None:
        size, made, stride = self.src.dims[2 + axis], self.dst.dims[2 + axis], self.strides[axis]
        extent = (self.kernel[axis] - 1) * self.steps[axis] + 1
        room = size + self.padding_l[axis] + self.padding_r[axis] - extent
        allowed = (room // stride + 1, -(-room // stride) + 1) if room >= 0 else ()
        if made not in allowed:
            wanted = " or ".join(map(str, sorted({*allowed}))) or "none, as the kernel exceeds the padded src"
            raise InvalidArguments(f"dst's {name} is {made}, src, kernel, strides and padding make it {wanted}")
        empty = next((run.output for run in self.runs(axis) if not run.window.inside), None)
        if empty is not None and (self.alg == EXCLUDE or self.indices is not None):
            what = "its mean is 0 / 0" if self.indices is None else "its maximum has no place"
            raise InvalidArguments(
                f"the window of dst's {name} {empty} lies in padding alone, {what}: take less padding or a smaller dst"
            )

    def runs(self, axis: int) -> list[WindowRun]:
        """The windows of the results along an axis, neighbours that are alike together."""
        size, made, before = self.src.dims[2 + axis], self.dst.dims[2 + axis], self.padding_l[axis]
        counted = size + self.padding_r[axis] if self.alg == INCLUDE else None
        return axis_runs(
            size=size,
            outputs=made,
            kernel=self.kernel[axis],
            stride=self.strides[axis],
            dilation=self.steps[axis],
            before=before,
            counted=counted,
        )

    @property
    def is_max(self) -> bool:
        return self.alg == MAX

    @property
    def steps(self) -> tuple[int, ...]:
        """From a position of a window to the next one, in elements of each axis."""
        return tuple(dilation + 1 for dilation in self.dilations)

    def __str__(self) -> str:
        sizes = f"kernel {self.kernel}, strides {self.strides}, dilations {self.dilations}"
        indices = f" with indices {self.indices}" if self.indices else ""
        return f"pooling {self.alg} of {self.src} to {self.dst}{indices}, {sizes}, {self.padding_l} {self.padding_r}"


@dataclass(frozen=True, slots=True)
class AdaptivePooling:
    """dst[n, c, y, x] = max or mean of src over rows floor(y*H/oh) to ceil((y+1)*H/oh) - 1, and so on, as in torch.

    alg: "max" or "avg".  src, dst, indices as in PoolingForward; sizes of dst are what is wanted, such as 1 for the
    whole plane.  Raises InvalidArguments.
    """

    alg: str
    src: MemoryDesc
    dst: MemoryDesc
    indices: MemoryDesc | None = None

    def __post_init__(self) -> None:
        check_alg("AdaptivePooling.alg", self.alg, ("max", "avg"))
        check_tensors(self.src, self.dst, self.indices, self.alg)
        if self.indices is not None and self.indices.dtype != s32:
            raise InvalidArguments("indices is u8, windows of different sizes have s32 ones")
        for name, size, made in zip(AXES[2 - self.src.ndims :], self.src.dims[2:], self.dst.dims[2:], strict=True):
            if not size or not made:
                raise InvalidArguments(f"the {name} of src is {size}, of dst {made}: both must be at least 1")

    def runs(self, axis: int) -> list[WindowRun]:
        """As in PoolingForward."""
        return adaptive_runs(self.src.dims[2 + axis], self.dst.dims[2 + axis])

    @property
    def is_max(self) -> bool:
        return self.alg == MAX

    @property
    def steps(self) -> tuple[int, ...]:
        """As in PoolingForward."""
        return (1,) * (self.src.ndims - 2)

    def __str__(self) -> str:
        indices = f" with indices {self.indices}" if self.indices else ""
        return f"adaptive pooling {self.alg} of {self.src} to {self.dst}{indices}"


Pooling = PoolingForward | AdaptivePooling
