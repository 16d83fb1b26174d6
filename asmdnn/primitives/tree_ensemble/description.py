"""What a sum over decision trees is: its tensors, and what they must be."""

from typing import Literal

from asmdnn.errors import InvalidArguments, shown
from asmdnn.generators.trees.codes import LANES, features_of
from asmdnn.generators.trees.walk import COLUMNS, MOST_UNITS, WALKS
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.numbers import check_alg, check_flag
from asmdnn.primitives.shapes.tensors import check_tensor
from asmdnn.records import dataclass
from asmdnn.types import f32, s32

AGGREGATES = ("sum", "min", "max")
MOST_FEATURES = 1 << 20
MOST_TREES = 1 << 20
MOST_COLUMNS = 1 << 16
TYPES = {"src": f32, "nodes": s32, "order": s32, "values": f32, "base": f32, "dst": f32}


def padded(count: int) -> int:
    """The power of two that so many fit in."""
    return 1 << max(0, count - 1).bit_length()


def list_of(trees: int) -> int:
    """The words of so many trees in an order: their number, with those that fill up the last eight, and these."""
    return padded(WALKS + -(-trees // WALKS) * WALKS)


@dataclass(frozen=True, slots=True)
class TreeEnsemble:
    """dst[i, c] = base[c] + the sum of what the leaves give that row i of src reaches, in the order of trees; or, with
    base added, their minimum or maximum.  A node sends x to its left if src's feature <= threshold, else, and with NaN,
    to its right.

    src: f32 (rows, features); dst: f32 (rows, columns); base: f32 (columns).  nodes: the table of nodes, s32; order:
    lists of roots, s32; values: rows of leaves, f32, or None if every tree gives to one column: as `packed` of
    packing.py makes them.  trees: the most that give to one column.  aggregate: sum, min or max.
    mirrored: features from len(src) on are those of -src.  Source: ONNX's TreeEnsemble.
    Whatever the tables hold, nothing outside of them is read.  Raises InvalidArguments.
    """

    src: MemoryDesc
    nodes: MemoryDesc
    order: MemoryDesc
    values: MemoryDesc | None
    base: MemoryDesc
    dst: MemoryDesc
    trees: int
    aggregate: Literal["sum", "min", "max"] = "sum"
    mirrored: bool = False

    def __post_init__(self) -> None:
        check_alg("TreeEnsemble.aggregate", self.aggregate, AGGREGATES)
        check_flag("TreeEnsemble.mirrored", self.mirrored)
        if type(self.trees) is not int or not 1 <= self.trees <= MOST_TREES:
            raise InvalidArguments(f"trees must be an integer from 1 to {MOST_TREES}, not {shown(self.trees)}")
        for name, dtype in TYPES.items():
            desc = getattr(self, name)
            if name == "values" and desc is None:
                continue
            check_tensor(name, desc)
            if desc.dtype != dtype:
                raise InvalidArguments(f"{name} is {desc.dtype}, it must be {dtype}")
        self._check_dims()

    def _check_dims(self) -> None:
        if self.src.ndims != 2 or not 1 <= self.src.dims[1] <= MOST_FEATURES:
            raise InvalidArguments(f"src has dims {self.src.dims}, they must be rows and 1 to {MOST_FEATURES} features")
        if self.base.ndims != 1 or not 1 <= self.base.dims[0] <= MOST_COLUMNS:
            raise InvalidArguments(f"base has dims {self.base.dims}, it must be a row of 1 to {MOST_COLUMNS} columns")
        wanted: dict[str, tuple[int, ...]] = {
            "dst": (self.src.dims[0], self.columns),
            "order": (self.lists, list_of(self.trees)),
        }
        for name, dims in wanted.items():
            if getattr(self, name).dims != dims:
                raise InvalidArguments(f"{name} has dims {getattr(self, name).dims}, they must be {dims}")
        words = self.nodes.dims[0] if self.nodes.ndims == 1 else 0
        if words != padded(words) or not 8 <= words <= 2 * MOST_UNITS:
            raise InvalidArguments(f"nodes has dims {self.nodes.dims}, it must be a power of two from 8 on, of words")
        if self.values is not None:
            blocks, shape = -(-self.columns // COLUMNS), self.values.dims
            fits = len(shape) == 3 and (shape[0], shape[2]) == (blocks, COLUMNS) and 0 < shape[1] == padded(shape[1])
            if not fits:
                raise InvalidArguments(f"values has dims {shape}, they must be ({blocks}, a power of two, {COLUMNS})")

    @property
    def columns(self) -> int:
        return self.base.dims[0]

    @property
    def lists(self) -> int:
        """Of trees: one for each column, or one for all."""
        return self.columns if self.values is None else 1

    @property
    def units(self) -> int:
        """Of the table of nodes."""
        return self.nodes.dims[0] // 2

    @property
    def words(self) -> int:
        """Of a row's codes, a power of two."""
        return padded(max(LANES, features_of(self.src.dims[1]) * (1 + self.mirrored)))

    def __str__(self) -> str:
        what = f"{self.aggregate} of {self.trees} trees"
        return f"{what} of {self.src} to {self.dst}" + ", mirrored" * self.mirrored
