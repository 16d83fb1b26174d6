"""A 3x3 convolution with stride 1 to test, its answer in float64, and how far rounding may move it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import asmdnn as dnn
from asmdnn.bench.typed import narrowed
from asmdnn.bench.values import decoded, encoded, poison, rounded
from asmdnn.isa.vectors import lanes_of
from asmdnn.primitives.convolution.winograd.cut import WinogradCut
from asmdnn.primitives.convolution.winograd.plan import level_of, prepared, with_cut
from asmdnn.primitives.core.descriptor import PrimitiveDesc
from tests.generators.references.winograd import matrices
from tests.primitives.guarded import check_at_pages, guarded_tensors
from tests.support.plans import execute

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
UNIT_ROUNDOFF = 2.0**-24
BF16_ROUNDINGS = 2 << 15  # of f32 that a tile and weights, rounded to bf16, count as
ROUNDINGS = 30  # of a term in the transforms of source, weights and products, for both axes


@dataclass(frozen=True, slots=True)
class Case:
    """padding: top, left, bottom, right.  tags: of src and dst.  types: of src, weights and dst."""

    mb: int
    ic: int
    oc: int
    size: tuple[int, int]
    padding: tuple[int, int, int, int] = (1, 1, 1, 1)
    tags: tuple[str, str] = ("any", "any")
    bias: bool = True
    groups: int = 1
    types: tuple[dnn.DataType, dnn.DataType, dnn.DataType] = (dnn.f32, dnn.f32, dnn.f32)

    @property
    def src_dims(self) -> tuple[int, ...]:
        return (self.mb, self.ic, *self.size)

    @property
    def weights_dims(self) -> tuple[int, ...]:
        of_groups = (self.groups,) if self.groups > 1 else ()
        return (*of_groups, self.oc // self.groups, self.ic // self.groups, 3, 3)

    @property
    def dst_dims(self) -> tuple[int, ...]:
        top, left, bottom, right = self.padding
        return (self.mb, self.oc, self.size[0] + top + bottom - 2, self.size[1] + left + right - 2)

    def desc(self, algorithm: str = "winograd", weights: dnn.MemoryDesc | None = None) -> dnn.ConvolutionForward:
        return dnn.ConvolutionForward(
            src=dnn.MemoryDesc(self.src_dims, self.types[0], self.tags[0]),
            weights=weights or dnn.MemoryDesc(self.weights_dims, self.types[1], "any"),
            bias=dnn.MemoryDesc((self.oc,), dnn.f32, "a") if self.bias else None,
            dst=dnn.MemoryDesc(self.dst_dims, self.types[2], self.tags[1]),
            padding_l=self.padding[:2],
            padding_r=self.padding[2:],
            algorithm=dnn.Algorithm(f"convolution_{algorithm}"),
        )

    def arrays(self) -> dict[str, Floats]:
        random = np.random.default_rng(11)
        dims = {"src": self.src_dims, "weights": self.weights_dims, "bias": (self.oc,), "dst": self.dst_dims}
        types = dict(zip(("src", "weights", "dst"), self.types, strict=True))
        numbers = {name: random.standard_normal(shape).astype(np.float32) for name, shape in dims.items()}
        return {name: np.float32(rounded(array, types.get(name, dnn.f32))) for name, array in numbers.items()}

    def of_groups(self, arrays: dict[str, Floats]) -> tuple[Doubles, Doubles]:
        """src [mb, groups, ic / groups, rows, cols] and weights [groups, oc / groups, ic / groups, 3, 3]."""
        src = arrays["src"].reshape(self.mb, self.groups, -1, *self.size)
        weights = arrays["weights"].reshape(self.groups, -1, self.ic // self.groups, 3, 3)
        return src.astype(np.float64), weights.astype(np.float64)

    def sums(self, arrays: dict[str, Floats]) -> Doubles:
        """The results before post-ops."""
        top, left, bottom, right = self.padding
        src, weights = self.of_groups(arrays)
        padded = np.pad(src, ((0, 0), (0, 0), (0, 0), (top, bottom), (left, right)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(3, 4))
        total: Doubles = np.einsum("ngcyxij,gocij->ngoyx", windows, weights, optimize=True).reshape(self.dst_dims)
        return total + arrays["bias"].astype(np.float64)[:, None, None] * self.bias

    def tolerance(self, arrays: dict[str, Floats], m: int, roundings: int = ROUNDINGS) -> Doubles:
        """gamma(C + roundings) times the size of all that is added to a result, tile by tile (Higham, section 3.1)."""
        of = [np.abs(matrix) for matrix in matrices(m)]
        rows, cols = (-(-n // m) * m for n in self.dst_dims[2:])
        behind = [rows + 2, cols + 2]
        top, left, _, _ = self.padding
        inside = [min(n, room - before) for n, room, before in zip(self.size, behind, (top, left), strict=True)]
        src, filters = (np.abs(array) for array in self.of_groups(arrays))
        padded = np.zeros((*src.shape[:3], *behind))
        padded[..., top : top + inside[0], left : left + inside[1]] = src[..., : inside[0], : inside[1]]
        tiles = np.lib.stride_tricks.sliding_window_view(padded, (m + 2, m + 2), axis=(3, 4))[..., ::m, ::m, :, :]
        source = np.einsum("ai,ngcyxij,bj->ngcyxab", of[2], tiles, of[2], optimize=True)
        weights = np.einsum("ai,gocij,bj->gocab", of[1], filters, of[1])
        products = np.einsum("ngcyxab,gocab->ngoyxab", source, weights, optimize=True)
        size = np.einsum("ia,ngoyxab,jb->ngoyixj", of[0], products, of[0], optimize=True)
        size = size.reshape(self.mb, self.oc, rows, cols)[:, :, : self.dst_dims[2], : self.dst_dims[3]]
        size = size + np.abs(arrays["bias"])[:, None, None]
        terms = self.ic // self.groups + roundings
        bound: Doubles = size * (terms * UNIT_ROUNDOFF / (1 - terms * UNIT_ROUNDOFF))
        return bound


def planned(case: Case, isa: str, cut: WinogradCut, attr: dnn.Attr | None = None, threads: int = 1) -> PrimitiveDesc:
    """The plan of a case with that cut, proven."""
    desc, attr, engine = case.desc(), attr or dnn.Attr(), dnn.Engine(isa=isa, threads=threads, machine="zen3")
    assert level_of(desc, engine).isa == isa
    resolved, geometry = prepared(desc, engine)
    pd = PrimitiveDesc(desc, attr, engine, with_cut(resolved, attr, engine, geometry, cut))
    pd.plan.check()
    return pd


def panels_of(case: Case, isa: str, vectors: int) -> int:
    """Panels of so many vectors."""
    return -(-case.oc // (vectors * lanes_of(isa)))


def memories_of(pd: PrimitiveDesc, arrays: dict[str, Floats]) -> dict[str, dnn.Memory]:
    """dst holds what no result is, so that what is not written shows."""
    of = pd.plan.tensors
    held = {name: encoded(arrays[name], desc.dtype) for name, desc in of.items() if name != "dst"}
    held["dst"] = poison(of["dst"].dims, of["dst"].dtype)
    return {name: dnn.Memory.from_numpy(held[name], desc) for name, desc in of.items()}


def is_rounded(pd: PrimitiveDesc) -> bool:
    """Whether transformed tiles and weights are bf16."""
    return pd.plan.tensors["weights"].dtype == dnn.bf16


def name_of(value: object) -> str:
    return str(value).replace(" ", "")


def check(pd: dnn.PrimitiveDesc, case: Case, m: int, emulated: bool = False) -> None:
    """Values within the bound of F(m x m, 3x3), and zeros in the padding."""
    arrays = case.arrays()
    memories = memories_of(pd, arrays)
    execute(pd, memories, emulated)
    of_tiles = BF16_ROUNDINGS if is_rounded(pd) else 0
    wanted, tolerance = narrowed(case.sums(arrays), case.tolerance(arrays, m, ROUNDINGS + of_tiles), case.types[2])
    error = np.abs(decoded(memories["dst"].numpy(), case.types[2]) - wanted)
    assert (error <= tolerance).all()
    assert memories["dst"].padding_is_zero()


def check_guarded(pd: PrimitiveDesc, case: Case, m: int) -> None:
    """Right with every tensor at the end, then at the start of its pages.  m: of the transforms."""
    primitive, arrays = dnn.Primitive(pd), case.arrays()
    held = memories_of(pd, arrays)

    def fill(name: str, memory: dnn.Memory) -> None:
        memory.array[:] = held[name].array

    def run(at_end: bool) -> None:
        memories = guarded_tensors(pd.plan, at_end, fill)
        primitive.execute(**memories)
        assert (np.abs(memories["dst"].numpy() - case.sums(arrays)) <= case.tolerance(arrays, m)).all()

    check_at_pages(run)


def check_errors(case: Case, pd: dnn.PrimitiveDesc, isa: str, worst: float, mean: float) -> None:
    """Of a plan, beside those of direct convolution."""
    arrays, errors = case.arrays(), []
    for each in (pd, dnn.primitive_desc(case.desc("direct"), engine=dnn.Engine(isa=isa))):
        memories = memories_of(each, arrays)
        dnn.Primitive(each).execute(**memories)
        errors.append(np.abs(memories["dst"].numpy() - case.sums(arrays)))
    assert errors[0].max() <= worst * errors[1].max()
    assert errors[0].mean() <= mean * errors[1].mean()
