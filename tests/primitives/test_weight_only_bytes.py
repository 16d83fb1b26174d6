"""MatMul of bytes with weights that have zero points, or scales by groups of k: all arrive with the call."""

from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import InvalidArguments, Unimplemented
from tests.support.plans import emulate_plan, proved_desc

M, K, N, GROUP = 5, 96, 42, 32
LIMITS = {dnn.s8: (-128, 127), dnn.u8: (0, 255)}
MASKS = [(3, 3), (2, 0), (None, 2), (3, None), (0, 3), (None, 0)]  # of weights' scales and zero points, None for none
ULP = 2.0**-24


class Numbers(NamedTuple):
    """src, dst: their types; masks: of weights' scales and zero points; rows: whether each row of src has a scale."""

    src: dnn.DataType
    dst: dnn.DataType
    masks: tuple[int | None, int | None]
    rows: bool = False


class BytesCase:
    """A product with all numbers that it may have."""

    def __init__(self, numbers: Numbers) -> None:
        self.of, random = numbers, np.random.default_rng(7)
        self.rounds = numbers.dst in LIMITS
        (least, most), table = LIMITS[numbers.src], (K // GROUP, N)
        self.x = random.integers(least, most, (M, K), endpoint=True).astype(np.int8 if least else np.uint8)
        self.w = random.integers(-128, 127, (K, N), endpoint=True).astype(np.int8)
        self.bias = random.uniform(-1, 1, (1, N)).astype(np.float32)
        scale, point = numbers.masks
        self.src_scales = random.uniform(0.01, 0.02, (M, 1) if numbers.rows else (1, 1)).astype(np.float32)
        self.src_point = np.array([5], np.int32)
        self.scales = self.part(random.uniform(-2, 2, table).astype(np.float32), scale)
        self.points = self.part(random.integers(-128, 127, table, endpoint=True).astype(np.int32), point)

    @staticmethod
    def part(table: Any, mask: int | None) -> Any:
        return None if mask is None else table if mask == 3 else table[:1] if mask == 2 else table[:1, :1]

    def attr(self) -> dnn.Attr:
        scale, point = self.of.masks
        scales = {"src": int(self.of.rows)} | ({} if scale is None else {"weights": scale})
        points = {"src": 0} | ({} if point is None else {"weights": point})
        if self.rounds:
            scales, points = scales | {"dst": 0}, points | {"dst": 0}
        groups = {"weights": (GROUP, 1)} if 3 in self.of.masks else {}
        return dnn.Attr([dnn.Eltwise("relu")], scales=scales, zero_points=points, groups=groups)

    def pd(self, engine: dnn.Engine, layout: str = "any") -> dnn.PrimitiveDesc:
        src, weights = dnn.MemoryDesc((M, K), self.of.src, "ab"), dnn.MemoryDesc((K, N), dnn.s8, layout)
        dst, bias = dnn.MemoryDesc((M, N), self.of.dst, "ab"), dnn.MemoryDesc((1, N), dnn.f32, "ab")
        return proved_desc(dnn.MatMul(src, weights, dst, bias), self.attr(), engine)

    def memories(self, pd: dnn.PrimitiveDesc) -> dict[str, dnn.Memory]:
        found = {
            "src": self.x, "bias": self.bias, "src_scales": self.src_scales, "src_zero_points": self.src_point,
            "weights_scales": self.scales, "weights_zero_points": self.points,
            "dst_scales": np.array([40], np.float32), "dst_zero_points": np.array([3], np.int32),
        }  # fmt: skip
        tensors, flat = pd.plan.tensors, ("scales", "points")
        arrays = {n: x.ravel() if n.endswith(flat) else x for n, x in found.items() if n in tensors}
        memories = {name: dnn.Memory.from_array(array) for name, array in arrays.items()}
        weights = dnn.Memory.from_numpy(self.w, tensors["weights"])
        return memories | {"weights": weights, "dst": dnn.Memory(tensors["dst"])}

    def check(self, dst: Any) -> None:
        """Within (k + 8) roundings of what is summed, and one of dst."""
        spread = [np.zeros((K, N)) if t is None else np.repeat(np.broadcast_to(t, (K // GROUP, N)), GROUP, 0)
                  for t in (self.scales, self.points)]  # fmt: skip
        scales = spread[0] if self.scales is not None else np.ones((K, N))
        a = (self.x.astype(np.float64) - self.src_point) * self.src_scales
        exact = np.maximum(a @ ((self.w - spread[1]) * scales) + self.bias, 0)
        size = np.abs(a) @ ((np.abs(self.w.astype(float)) + np.abs(spread[1])) * np.abs(scales)) + 1
        bound = (K + 8) * ULP * size
        if self.rounds:
            exact, bound = np.clip(exact / 40 + 3, *LIMITS[self.of.dst]), bound / 40 + 0.5 + 1e-5
        elif self.of.dst == dnn.bf16:
            dst = dst.view(ml_dtypes.bfloat16)
            bound = bound + 2.0**-8 * np.abs(exact)
        assert (np.abs(dst.astype(np.float64) - exact) <= bound).all()


@pytest.mark.parametrize("isa", [pytest.param(x, marks=pytest.mark.isa(x)) for x in ("avx2", "avx512_core")])
@pytest.mark.parametrize("masks", MASKS, ids=str)
def test_products(isa: str, masks: tuple[int | None, int | None]) -> None:
    types = ((dnn.u8, dnn.f32), (dnn.s8, dnn.u8), (dnn.u8, dnn.s8), (dnn.s8, dnn.bf16))
    for i, (src, dst) in enumerate(types):
        case, found = BytesCase(Numbers(src, dst, masks, rows=i % 2 == 1)), []
        for threads in (1, 3):
            pd = case.pd(dnn.Engine(isa=isa, threads=threads, machine="zen3"), "any" if i % 3 else "ab")
            assert pd.implementation == f"reorder+unpacking:{isa}"
            memories = case.memories(pd)
            dnn.Primitive(pd).execute(**memories)
            found.append(memories["dst"].numpy().copy())
        assert found[0].tobytes() == found[1].tobytes()
        case.check(found[0])


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize("isa", ["avx2", "avx512_core"])
def test_emulated(isa: str) -> None:
    case = BytesCase(Numbers(dnn.u8, dnn.u8, (3, 3)))
    pd = case.pd(dnn.Engine(isa=isa, threads=1, machine="zen3"))
    memories = case.memories(pd)
    emulate_plan(pd.plan, memories)
    case.check(memories["dst"].numpy())


@pytest.mark.isa("avx2")
def test_arrays() -> None:
    """A row of scales and zero points for each group; integers of dst by what they are rounded with."""
    random = np.random.default_rng(1)
    a, b = random.integers(0, 255, (4, 64)).astype(np.uint8), random.integers(-128, 127, (64, 40)).astype(np.int8)
    scales, points = (
        random.uniform(0.1, 1, (2, 40)).astype(np.float32),
        random.integers(-9, 9, (2, 40)).astype(np.int32),
    )
    wide = (b - np.repeat(points, 32, 0)) * np.repeat(scales, 32, 0).astype(np.float64)
    exact, words = (a.astype(np.float64) - 7) * 0.5 @ wide, {"zero_points": {"a": 7, "b": points}}
    found = dnn.ops.matmul(a, b, scales={"a": 0.5, "b": scales}, **words)
    assert np.abs(found - exact).max() <= 72 * ULP * (np.abs(a).astype(float) @ np.abs(wide)).max()
    again = dnn.ops.matmul(a, b, scales={"a": 0.5, "b": scales}, dtype=dnn.bf16, **words)
    assert (np.abs(again.astype(np.float64) - exact) <= 2.0**-8 * np.abs(exact) + 1e-2).all()


def refused(**words: Any) -> str:
    """The reason of bytes of these numbers."""
    dst = dnn.MemoryDesc((4, 40), words.pop("dst", dnn.f32), "ab")
    k = words.pop("k", 64)
    desc = dnn.MatMul(dnn.MemoryDesc((4, k), dnn.u8, "ab"), dnn.MemoryDesc((k, 40), dnn.s8, "any"), dst)
    with pytest.raises((Unimplemented, InvalidArguments)) as found:
        dnn.primitive_desc(desc, dnn.Attr(**words), dnn.Engine(isa="avx2", threads=1))
    return str(found.value)


def test_what_is_refused() -> None:
    by_groups: dict[str, Any] = {"scales": {"weights": 3}, "groups": {"weights": (32, 1)}}
    assert "which do not divide k, 80" in refused(k=80, **by_groups)
    assert "for more than 2 dims" in refused(scales={"src": 4, "weights": 3}, groups=by_groups["groups"])


@pytest.mark.parametrize("isa", [pytest.param(x, marks=pytest.mark.isa(x)) for x in ("avx2", "avx512_core")])
@pytest.mark.parametrize("mask", [0, 2, 3])
@pytest.mark.parametrize("rows", [1, 2, 3, 9, 10, 13])
def test_sums_are_exact_while_f32_has_them(isa: str, rows: int, mask: int) -> None:
    """Of 2,048 products of large bytes by weights near their zero points: what is summed before zero points are
    subtracted needs 25 bits, and the sums themselves need 20.  Scales are powers of two, so dst is exact."""
    random, (k, n, group) = np.random.default_rng(rows), (2048, 70, 256)
    x = random.integers(253, 255, (rows, k), endpoint=True).astype(np.uint8)
    w = random.integers(253, 255, (k, n), endpoint=True).astype(np.uint8)
    points = BytesCase.part(random.integers(252, 253, (k // group, n), endpoint=True).astype(np.int32), mask)
    scales = BytesCase.part(np.full((k // group, n), 0.25, np.float32), mask)
    attr = dnn.Attr(
        scales={"weights": mask}, zero_points={"weights": mask}, groups={"weights": (group, 1)} if mask == 3 else {}
    )
    descs = (dnn.MemoryDesc((rows, k), dnn.u8, "ab"), dnn.MemoryDesc((k, n), dnn.u8, "ab"))
    desc = dnn.MatMul(*descs, dnn.MemoryDesc((rows, n), dnn.f32, "ab"))
    pd = proved_desc(desc, attr, dnn.Engine(isa=isa, threads=1, machine="zen3"))
    assert pd.implementation == f"reorder+unpacking:{isa}"
    arrays = {"src": x, "weights": w, "weights_scales": scales.ravel(), "weights_zero_points": points.ravel()}
    memories = {name: dnn.Memory.from_array(array) for name, array in arrays.items()}
    memories["dst"] = dnn.Memory(pd.plan.tensors["dst"])
    dnn.Primitive(pd).execute(**memories)
    spread = np.repeat(np.broadcast_to(points, (k // group, n)), group, 0)
    exact = x.astype(np.int64) @ (w.astype(np.int64) - spread)
    assert 2**18 < np.abs(exact).max() < 2**24 < group * 255 * 255 + np.abs(exact).max()
    np.testing.assert_array_equal(memories["dst"].numpy(), exact / 4)


@pytest.mark.parametrize("isa", [pytest.param(x, marks=pytest.mark.isa(x)) for x in ("avx2", "avx512_core")])
@pytest.mark.parametrize("weights", [dnn.u8, dnn.u4, dnn.s4], ids=str)
@pytest.mark.parametrize("rows", [1, 2])
def test_weights_that_are_zero_points_are_zeros(isa: str, rows: int, weights: dnn.DataType) -> None:
    """Of one or two rows, whatever their scales: src of whole numbers."""
    random, (k, n, group) = np.random.default_rng(3), (128, 40, 32)
    values = np.repeat(random.integers(-8 if weights == dnn.s4 else 0, 7, (k // group, n), endpoint=True), group, 0)
    stored = values.astype(np.int8 if weights == dnn.s4 else np.uint8)
    x = random.integers(-99, 99, (rows, k)).astype(np.float32)
    scales = random.uniform(-2, 2, (k // group, n)).astype(np.float32)
    attr = dnn.Attr(scales={"weights": 3}, zero_points={"weights": 3}, groups={"weights": (group, 1)})
    desc = dnn.MatMul(dnn.MemoryDesc((rows, k), dnn.f32, "ab"), dnn.MemoryDesc((k, n), weights, "any"),
                      dnn.MemoryDesc((rows, n), dnn.f32, "ab"))  # fmt: skip
    pd = proved_desc(desc, attr, dnn.Engine(isa=isa, threads=1, machine="zen3"))
    memories = {
        "src": dnn.Memory.from_array(x), "weights": dnn.Memory.from_numpy(stored, pd.plan.tensors["weights"]),
        "weights_scales": dnn.Memory.from_array(scales.ravel()), "dst": dnn.Memory(pd.plan.tensors["dst"]),
        "weights_zero_points": dnn.Memory.from_array(values[::group].astype(np.int32).ravel()),
    }  # fmt: skip
    dnn.Primitive(pd).execute(**memories)
    assert not memories["dst"].numpy().any()
