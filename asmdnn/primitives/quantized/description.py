"""A product with weights of 4 or 8 bits, validated at once."""

from asmdnn.errors import InvalidArguments, counted, not_one_of, shown
from asmdnn.exact import exact
from asmdnn.isa.nibbles import NIBBLE_BITS
from asmdnn.isa.small_floats import TABLES
from asmdnn.memory import MemoryDesc
from asmdnn.memory.formats import desc_words
from asmdnn.primitives.attributes.numbers import finite
from asmdnn.primitives.shapes.tensors import check_tensor
from asmdnn.records import dataclass
from asmdnn.types import f32, u8

BLOCK = 8  # of k, whose nibbles are in 4 bytes
LEAST_GROUP, MOST_GROUP = 16, 256


@exact
@dataclass(frozen=True, slots=True, eq=False)
class QuantizedMatMul:
    """dst[m, n] = sum over k of src[m, k] * scales[k / group, n] * (weights[k, n] - zero_point[k / group, n])

    src: (m, k); dst: (m, n), both f32, bf16 or f16.  weights of 8 bits: u8 (k, n); of 4 bits: u8 (k / 2, n), each byte
    two nibbles from 0 to 15: of every eight k the first four are the lower halves of four rows of bytes, the last four
    the upper halves.  scales: f32 (k / group, n), so that their rows say the group: 16 to 256 k, a multiple of 16.
    offsets: f32 of scales' dims, scales * zero points, where these differ; else None, and all zero points are
    `zero_point`.

    src is rounded to s8 by groups inside: to 1 / 254 of the largest element of each at most.  Products and their sums
    over a group are exact.  With Attr(accumulation_mode="f32") src is not rounded: weights become f32 in registers, and
    sums are f32.  weights, scales and offsets that are "any" get panels.  table: "f4_e2m1" or "nf4", of which nibbles
    are the numbers of floats, without zero points; src is not rounded then.  Raises InvalidArguments.
    """

    src: MemoryDesc
    weights: MemoryDesc
    scales: MemoryDesc
    dst: MemoryDesc
    offsets: MemoryDesc | None = None
    zero_point: float = 0.0
    table: str = ""

    def __post_init__(self) -> None:
        for name in ("src", "weights", "scales", "dst"):
            check_tensor(name, getattr(self, name))
            if getattr(self, name).ndims != 2:
                raise InvalidArguments(f"{name} has {counted(getattr(self, name).ndims, 'dim')}, it must be a matrix")
        (m, k), n = self.src.dims, self.weights.dims[1]
        rows = self.weights.dims[0]
        if self.weights.dtype != u8 or k not in (rows, 2 * rows):
            what = f"{self.weights.dtype} {self.weights.dims}"
            raise InvalidArguments(f"weights are {what}, they must be u8 of k rows, {k}, or of half as many")
        check_tensor("dst", self.dst, (m, n))
        self._check_groups(k, n)
        object.__setattr__(self, "zero_point", finite("QuantizedMatMul.zero_point", self.zero_point))
        most = 2**self.bits - 1
        if not 0 <= self.zero_point <= most or self.zero_point != int(self.zero_point):
            raise InvalidArguments(f"zero_point is {shown(self.zero_point)}, it must be whole, from 0 to {most}")
        if self.offsets is not None and self.zero_point:
            raise InvalidArguments(f"zero_point is {self.zero_point:g}, but offsets are given: leave one of them out")
        if not isinstance(self.table, str) or self.table not in ("", *TABLES):
            raise InvalidArguments(not_one_of("table", self.table, ("", *TABLES)))
        if self.table and (self.bits > NIBBLE_BITS or self.zero_point or self.offsets is not None):
            raise InvalidArguments(f"table is {self.table}: it is of 4 bits, without zero points and offsets")

    def _check_groups(self, k: int, n: int) -> None:
        groups = self.scales.dims[0]
        if self.scales.dims[1] != n:
            raise InvalidArguments(f"scales have dims {self.scales.dims}, the last one must be that of weights, {n}")
        check_group(k, groups)
        for name in ("scales", "offsets"):
            if getattr(self, name) is not None:
                check_tensor(name, getattr(self, name), (groups, n))
                if getattr(self, name).dtype != f32:
                    raise InvalidArguments(f"{name} are {getattr(self, name).dtype}, they must be f32")

    @property
    def bits(self) -> int:
        """Of an element of weights."""
        return 8 if self.weights.dims[0] == self.src.dims[1] else 4

    @property
    def group(self) -> int:
        """How many k share a scale."""
        return self.src.dims[1] // self.scales.dims[0]

    def __str__(self) -> str:
        more = " with offsets" * (self.offsets is not None)
        src, dst = desc_words(self.src, "mk"), desc_words(self.dst, "mn")
        return f"product of {src} with weights of {self.bits} bits in groups of {self.group}{more} to {dst}"


def check_group(k: int, groups: int) -> None:
    """Raise InvalidArguments unless so many rows of scales divide k into groups that kernels take."""
    if not groups or not k or k % groups:
        raise InvalidArguments(f"scales have {counted(groups, 'row')}, they must divide k, {k}, which must not be 0")
    group = k // groups
    if group % LEAST_GROUP or not LEAST_GROUP <= group <= MOST_GROUP:
        raise InvalidArguments(f"groups are of {group} k, they must be of 16 to 256, a multiple of 16")
