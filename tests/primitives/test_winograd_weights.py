"""Gradients of the weights of 3x3 convolutions by Winograd's algorithm, against float64 and within the bound of its
roundings: sizes, padding, groups, layouts, chunks and units, threads; what it refuses, and what `auto` takes."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import asmdnn as dnn
from asmdnn.primitives.core.descriptor import PrimitiveDesc
from tests.generators.references.winograd import matrices
from tests.support.plans import execute, proved_desc

Doubles = npt.NDArray[np.float64]
ROUNDINGS = 40  # of a term: in the transforms of source, of gradients of results and of sums, and when chunks are added


@dataclass(frozen=True, slots=True)
class Case:
    """padding: top, left, bottom, right.  tags: of src and of diff_dst."""

    mb: int
    ic: int
    oc: int
    size: tuple[int, int]
    padding: tuple[int, int, int, int] = (1, 1, 1, 1)
    groups: int = 1
    tags: tuple[str, str] = ("any", "any")

    @property
    def dst_size(self) -> tuple[int, int]:
        top, left, bottom, right = self.padding
        return self.size[0] + top + bottom - 2, self.size[1] + left + right - 2

    def desc(self, algorithm: str = "winograd", bias: bool = True, weights: str = "any") -> Any:
        of_groups = (self.groups,) if self.groups > 1 else ()
        dims = (*of_groups, self.oc // self.groups, self.ic // self.groups, 3, 3)
        return dnn.ConvolutionBackwardWeights(
            src=dnn.MemoryDesc((self.mb, self.ic, *self.size), dnn.f32, self.tags[0]),
            diff_weights=dnn.MemoryDesc(dims, dnn.f32, weights),
            diff_dst=dnn.MemoryDesc((self.mb, self.oc, *self.dst_size), dnn.f32, self.tags[1]),
            diff_bias=dnn.MemoryDesc((self.oc,), dnn.f32, "a") if bias else None,
            padding_l=self.padding[:2],
            padding_r=self.padding[2:],
            algorithm=dnn.Algorithm(f"convolution_{algorithm}"),
        )


SMALL = Case(2, 19, 21, (9, 6))
CASES = (
    SMALL,
    Case(1, 8, 8, (5, 5)),
    Case(1, 3, 40, (30, 7), (0, 0, 0, 0)),
    Case(3, 33, 16, (7, 13), (1, 0, 0, 1)),
    Case(2, 16, 9, (3, 3), (0, 2, 1, 0)),
    Case(1, 24, 24, (1, 17), (2, 1, 2, 1)),
    Case(1, 70, 130, (14, 14)),
    Case(2, 16, 64, (10, 9), groups=2),
    Case(40, 5, 8, (8, 8)),  # chunks of some images each
    Case(1, 5, 8, (60, 60)),  # of strips of one
)


def arrays_of(case: Case) -> tuple[Doubles, Doubles]:
    random = np.random.default_rng(5)
    x = random.standard_normal((case.mb, case.ic, *case.size)).astype(np.float32)
    y = random.standard_normal((case.mb, case.oc, *case.dst_size)).astype(np.float32)
    return x.astype(np.float64), y.astype(np.float64)


def padded(x: Doubles, case: Case, m: int = 1) -> Doubles:
    """With its padding, and room for whole tiles of m x m results."""
    rows, cols = (-(-n // m) * m + 2 for n in case.dst_size)
    top, left = case.padding[:2]
    found = np.zeros((*x.shape[:2], max(rows, top + x.shape[2]), max(cols, left + x.shape[3])))
    found[:, :, top : top + x.shape[2], left : left + x.shape[3]] = x
    return found[:, :, :rows, :cols]


def by_groups(x: Doubles, case: Case) -> Doubles:
    return x.reshape(x.shape[0], case.groups, -1, *x.shape[2:])


def wanted(case: Case, x: Doubles, y: Doubles) -> Doubles:
    windows = np.lib.stride_tricks.sliding_window_view(by_groups(padded(x, case), case), case.dst_size, axis=(3, 4))
    found: Doubles = np.einsum("ngiabyx,ngoyx->goiab", windows, by_groups(y, case), optimize=True)
    return found.reshape(case.desc().diff_weights.dims)


def tolerance(case: Case, x: Doubles, y: Doubles, m: int = 4) -> Doubles:
    """gamma(tiles + ROUNDINGS) times the size of all that is added to a gradient, tile by tile (Higham, 3.1)."""
    results, weights, source = (np.abs(matrix) for matrix in matrices(m))
    rows, cols = (-(-n // m) * m for n in case.dst_size)
    whole = np.zeros((*y.shape[:2], rows, cols))
    whole[:, :, : y.shape[2], : y.shape[3]] = np.abs(y)
    view = np.lib.stride_tricks.sliding_window_view
    tiles_x = view(by_groups(padded(np.abs(x), case, m), case), (m + 2, m + 2), axis=(3, 4))[..., ::m, ::m, :, :]
    tiles_y = view(by_groups(whole, case), (m, m), axis=(3, 4))[..., ::m, ::m, :, :]
    of_x = np.einsum("ai,ngcyxij,bj->ngcyxab", source, tiles_x, source, optimize=True)
    of_y = np.einsum("ia,ngoyxij,jb->ngoyxab", results, tiles_y, results, optimize=True)
    products = np.einsum("ngcyxab,ngoyxab->gocab", of_x, of_y, optimize=True)
    size = np.einsum("ai,gocab,bj->gocij", weights, products, weights, optimize=True)
    terms = case.mb * (rows // m) * (cols // m) + ROUNDINGS
    bound: Doubles = size.reshape(case.desc().diff_weights.dims) * terms * 2.0**-24 / (1 - terms * 2.0**-24)
    return bound


def gradients(pd: PrimitiveDesc, x: Doubles, y: Doubles) -> dict[str, Any]:
    held = {"src": x.astype(np.float32), "diff_dst": y.astype(np.float32)}
    memories = {}
    for name, desc in pd.plan.tensors.items():
        array = held.get(name, np.full(desc.dims, np.nan, np.float32))
        memories[name] = dnn.Memory.from_numpy(array, desc)
    dnn.Primitive(pd).execute(**memories)
    assert memories["diff_weights"].padding_is_zero()
    return {name: memories[name].numpy() for name in ("diff_weights", "diff_bias") if name in memories}


def check(case: Case, pd: PrimitiveDesc) -> None:
    x, y = arrays_of(case)
    found = gradients(pd, x, y)
    assert (np.abs(found["diff_weights"] - wanted(case, x, y)) <= tolerance(case, x, y)).all()
    if "diff_bias" in found:
        sums, size = (a.sum(axis=(0, 2, 3)) for a in (y, np.abs(y)))
        assert (np.abs(found["diff_bias"] - sums) <= y.size * 2.0**-24 * size).all()


def engine(isa: str, threads: int = 1, machine: str = "zen3") -> dnn.Engine:
    return dnn.Engine(isa=isa, threads=threads, machine=machine)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_values(isa: str, case: Case) -> None:
    pd = proved_desc(case.desc(), engine=engine(isa, threads=2))
    assert pd.implementation == f"winograd:{isa}"
    check(case, pd)


@pytest.mark.parametrize("tags", [("acdb", "acdb"), ("abcd", "abcd"), ("aBcd8b", "acdb")], ids=str)
@pytest.mark.parametrize("weights", ["any", "abcd"])
def test_layouts(isa: str, tags: tuple[str, str], weights: str) -> None:
    case = replace(SMALL, tags=tags)
    pd = proved_desc(case.desc(weights=weights), engine=engine(isa))
    assert pd.implementation.split("+")[-1] == f"winograd:{isa}"
    check(case, pd)


@pytest.mark.parametrize("case", [SMALL, CASES[6], CASES[8], CASES[9]], ids=str)
def test_bits_are_those_of_one_thread(isa: str, case: Case) -> None:
    x, y = arrays_of(case)
    alone, *others = (
        gradients(dnn.primitive_desc(case.desc(), engine=engine(isa, threads)), x, y)["diff_weights"]
        for threads in (1, 2, 3, 7)
    )
    assert all(np.array_equal(alone, other) for other in others)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"strides": (2, 2), "diff_dst": (2, 21, 5, 3)}, "strides (2, 2)"),
        ({"dilations": (1, 1), "diff_dst": (2, 21, 7, 4)}, "dilations (1, 1)"),
        ({"diff_weights": (21, 19, 1, 1), "diff_dst": (2, 21, 11, 8)}, "diff_weights are 1x1"),
    ],
)
def test_refusals(change: dict[str, Any], reason: str) -> None:
    """Others are computed as ever; the list says why not so."""
    dims = {name: value for name, value in change.items() if name.startswith("diff_")}
    fields = {name: dnn.MemoryDesc(value, dnn.f32, "any") for name, value in dims.items()}
    desc = replace(SMALL.desc(bias=False), **{**change, **fields})
    answers = dnn.implementations(desc, engine=engine("avx2"))
    (why,) = [x.reason for x in answers if isinstance(x, dnn.Refusal) and x.implementation.startswith("winograd")]
    assert reason in why
    assert "winograd" not in dnn.primitive_desc(desc, engine=engine("avx2")).implementation


@pytest.mark.parametrize(
    ("case", "name"),
    [
        (Case(1, 64, 64, (56, 56)), "winograd"),
        (Case(16, 128, 128, (28, 28)), "winograd"),
        (Case(1, 512, 512, (7, 7)), "direct"),
        (Case(1, 64, 64, (4, 4)), "direct"),
    ],
    ids=str,
)
def test_what_auto_takes(planned_isa: str, case: Case, name: str) -> None:
    pd = dnn.primitive_desc(case.desc("auto", bias=False), engine=engine(planned_isa, machine="zen4"))
    assert pd.implementation == f"{name}:{planned_isa}"
    direct = dnn.primitive_desc(case.desc("direct", bias=False), engine=engine(planned_isa, machine="zen4"))
    assert direct.implementation == f"direct:{planned_isa}"


@pytest.mark.emulated("avx512_core")
def test_emulated() -> None:
    case = Case(1, 5, 20, (5, 6), (1, 1, 1, 0), tags=("acdb", "acdb"))
    pd = proved_desc(case.desc(bias=False), engine=engine("avx512_core"))
    x, y = arrays_of(case)
    memories = {"src": x, "diff_dst": y, "diff_weights": np.full(case.desc().diff_weights.dims, np.nan)}
    held = {n: dnn.Memory.from_numpy(a.astype(np.float32), pd.plan.tensors[n]) for n, a in memories.items()}
    execute(pd, held, emulated=True)
    assert (np.abs(held["diff_weights"].numpy() - wanted(case, x, y)) <= tolerance(case, x, y)).all()
