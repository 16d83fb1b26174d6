"""MatMul with weights of 4 and 8 bits and scales by groups of k, which come with the call."""

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import InvalidArguments
from tests.support.plans import emulate_plan, proved_desc

LIMITS = {dnn.s4: (-8, 7), dnn.u4: (0, 15), dnn.s8: (-128, 127), dnn.u8: (0, 255)}
TYPES: dict[dnn.DataType, Any] = {dnn.f32: np.float32, dnn.bf16: ml_dtypes.bfloat16, dnn.f16: np.float16}
CASES = [(1, 64, 40, 32), (2, 96, 66, 48), (5, 256, 30, 128), (13, 64, 128, 16)]
GROUPS = {"groups": {"weights": (32, 1)}}
SCALED = {"scales": {"weights": 3}}


class WeightOnly:
    """Numbers of a product (m, k, n, group)."""

    def __init__(self, case: tuple[int, ...], weights: dnn.DataType, src: dnn.DataType, shifted: bool) -> None:
        (self.m, self.k, self.n, self.group), random = case, np.random.default_rng(case)
        least, most = LIMITS[weights]
        self.src, self.weights = src, weights
        self.x = random.uniform(-3, 3, (self.m, self.k)).astype(TYPES[src])
        self.w = random.integers(least, most, (self.k, self.n), endpoint=True).astype(np.int8 if least else np.uint8)
        self.scales = random.uniform(-2, 2, (self.k // self.group, self.n)).astype(np.float32)
        points = random.integers(least, most, self.scales.shape, endpoint=True).astype(np.int32)
        self.points = points if shifted else None
        self.bias = random.uniform(-1, 1, (1, self.n)).astype(np.float32)

    def attr(self, *post_ops: Any) -> dnn.Attr:
        points = {} if self.points is None else {"weights": 3}
        groups = {"weights": (self.group, 1)}
        return dnn.Attr(post_ops, scales={"weights": 3}, zero_points=points, groups=groups)

    @property
    def desc(self) -> dnn.MatMul:
        return dnn.MatMul(
            dnn.MemoryDesc((self.m, self.k), self.src, "ab"),
            dnn.MemoryDesc((self.k, self.n), self.weights, "any"),
            dnn.MemoryDesc((self.m, self.n), dnn.f32, "ab"),
            dnn.MemoryDesc((1, self.n), dnn.f32, "ab"),
        )

    def memories(self, pd: dnn.PrimitiveDesc) -> dict[str, dnn.Memory]:
        tensors = pd.plan.tensors
        found = {
            "src": dnn.Memory.from_array(self.x),
            "weights": dnn.Memory.from_numpy(self.w, tensors["weights"]),
            "bias": dnn.Memory.from_array(self.bias),
            "weights_scales": dnn.Memory.from_array(self.scales.ravel()),
            "dst": dnn.Memory(tensors["dst"]),
        }
        if self.points is not None:
            found["weights_zero_points"] = dnn.Memory.from_array(self.points.ravel())
        return found

    def check(self, dst: Any) -> None:
        """Within (k + 8) roundings of what is summed."""
        shift = np.zeros(self.scales.shape) if self.points is None else self.points
        spread = [np.repeat(x, self.group, 0).astype(np.float64) for x in (self.scales, shift)]
        exact = self.x.astype(np.float64) @ ((self.w - spread[1]) * spread[0]) + self.bias
        size = np.abs(self.x.astype(np.float64)) @ ((np.abs(self.w) + np.abs(spread[1])) * np.abs(spread[0])) + 1
        assert (np.abs(dst - np.maximum(exact, 0)) <= (self.k + 8) * 2.0**-24 * size).all()


@pytest.mark.parametrize("isa", [pytest.param(x, marks=pytest.mark.isa(x)) for x in ("avx2", "avx512_core")])
@pytest.mark.parametrize("weights", LIMITS, ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_products(isa: str, weights: dnn.DataType, case: tuple[int, ...]) -> None:
    """With a bias and relu; zero points or none, src of f32, bf16 and f16, one thread and several."""
    for src, shifted in ((dnn.f32, True), (dnn.bf16, False), (dnn.f16, True)):
        one, found = WeightOnly(case, weights, src, shifted), []
        for threads in (1, 3):
            pd = proved_desc(one.desc, one.attr(dnn.Eltwise("relu")), dnn.Engine(isa=isa, threads=threads))
            assert pd.implementation == f"{'reorder+' * (src != dnn.f32)}unpacking:{isa}"
            memories = one.memories(pd)
            dnn.Primitive(pd).execute(**memories)
            found.append(memories["dst"].numpy())
            one.check(found[-1])
        assert np.array_equal(*found)


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize("isa", ["avx2", "avx512_core"])
@pytest.mark.parametrize("weights", [dnn.s4, dnn.u8], ids=str)
def test_emulated(isa: str, weights: dnn.DataType) -> None:
    one = WeightOnly((3, 64, 21, 32) if weights == dnn.u8 else (3, 64, 22, 32), weights, dnn.f32, True)
    pd = dnn.primitive_desc(one.desc, one.attr(dnn.Eltwise("relu")), engine=dnn.Engine(isa=isa, threads=1))
    memories = one.memories(pd)
    emulate_plan(pd.plan, memories)
    one.check(memories["dst"].numpy())


@pytest.mark.isa("avx2")
def test_weights_that_a_reorder_packs() -> None:
    """From f32, rounded, into the format that the plan asks for; plain weights of 8 bits are packed with every call."""
    one, engine = WeightOnly((2, 64, 40, 32), dnn.s4, dnn.f32, False), dnn.Engine(isa="avx2")
    pd = dnn.primitive_desc(one.desc, one.attr(dnn.Eltwise("relu")), engine)
    memories = one.memories(pd)
    memories["weights"] = dnn.reorder(dnn.Memory.from_array(one.w.astype(np.float32)), pd.weights_desc, engine)
    dnn.Primitive(pd).execute(**memories)
    one.check(memories["dst"].numpy())
    plain = WeightOnly((2, 64, 40, 32), dnn.s8, dnn.f32, True)
    desc = plain.desc.with_formats({"weights": dnn.MemoryDesc((64, 40), dnn.s8, "ab")})
    pd = dnn.primitive_desc(desc, plain.attr(dnn.Eltwise("relu")), engine)
    assert pd.implementation == "reorder+unpacking:avx2"
    memories = plain.memories(pd)
    dnn.Primitive(pd).execute(**memories)
    plain.check(memories["dst"].numpy())


class Masked(WeightOnly):
    """Scales and zero points of these masks, None for none; groups where a mask is 3."""

    def __init__(self, weights: dnn.DataType, scales: int | None, points: int | None, layout: str) -> None:
        super().__init__((3, 96, 42, 32), weights, dnn.f32, points is not None)
        self.masks, self.layout = (scales, points), layout
        self.scales = np.ones((1, 1), np.float32) if scales is None else self.part(self.scales, scales)
        self.points = None if points is None or self.points is None else self.part(self.points, points)

    def part(self, table: Any, mask: int) -> Any:
        return table if mask == 3 else table[:1] if mask == 2 else table[:1, :1]

    def attr(self, *post_ops: Any) -> dnn.Attr:
        scales, points = ({} if mask is None else {"weights": mask} for mask in self.masks)
        groups = {"weights": (self.group, 1)} if 3 in self.masks else {}
        return dnn.Attr(post_ops, scales=scales, zero_points=points, groups=groups)

    @property
    def desc(self) -> dnn.MatMul:
        weights = dnn.MemoryDesc((self.k, self.n), self.weights, self.layout)
        return super().desc.with_formats({"weights": weights})

    def memories(self, pd: dnn.PrimitiveDesc) -> dict[str, dnn.Memory]:
        found = super().memories(pd)
        return {name: memory for name, memory in found.items() if name in pd.plan.tensors}

    def check(self, dst: Any) -> None:
        dims = self.k // self.group, self.n
        self.scales = np.broadcast_to(self.scales, dims)
        self.points = None if self.points is None else np.broadcast_to(self.points, dims)
        super().check(dst)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("masks", [(None, None), (0, 0), (2, None), (2, 2), (None, 2), (2, 0), (3, 0), (3, 2), (2, 3)])
@pytest.mark.parametrize("weights", [dnn.s4, dnn.u4])
def test_masks_without_groups(weights: dnn.DataType, masks: tuple[int | None, int | None]) -> None:
    """One for all, one for each column, or by groups, each as it is; weights in panels, and plain ones packed."""
    for layout in ("any", "ab", "ba"):
        one = Masked(weights, *masks, layout)
        pd = proved_desc(one.desc, one.attr(dnn.Eltwise("relu")), dnn.Engine(isa="avx2", threads=2))
        assert pd.implementation == f"{'reorder+' * (layout != 'any')}unpacking:avx2"
        memories = one.memories(pd)
        dnn.Primitive(pd).execute(**memories)
        one.check(memories["dst"].numpy())


def reason_of(desc: dnn.MatMul, attr: dnn.Attr) -> str:
    """Why kernels do not take weights as they are packed."""
    answers = dnn.implementations(desc, attr)
    return next(x.reason for x in answers if isinstance(x, dnn.Refusal) and x.implementation.startswith("unpacking"))


def test_k_that_is_no_multiple_of_16_is_multiplied_as_floats() -> None:
    desc = dnn.MatMul(t(2, 60), t(60, 4, dtype=dnn.s4), t(2, 4))
    assert "k is 60, weights of 4 bits are multiplied by a multiple of 16" in reason_of(desc, dnn.Attr())
    assert dnn.primitive_desc(desc).implementation.startswith("floats+")


def test_nothing_to_do() -> None:
    one = WeightOnly((1, 64, 2, 32), dnn.s4, dnn.f32, True)
    wide, none = dnn.MemoryDesc((0, 64), dnn.f32, "ab"), dnn.MemoryDesc((0, 2), dnn.f32, "ab")
    pd = dnn.primitive_desc(dnn.MatMul(wide, dnn.MemoryDesc((64, 2), dnn.s4, "any"), none), one.attr())
    assert not pd.plan.phases[0].records.size


@pytest.mark.parametrize(("options", "says"), [
    ({"groups": {"weights": (32, 1)}}, "groups has 'weights', which has neither scales nor zero points"),
    ({"groups": 32, **SCALED}, "groups must map tensors to sizes"),
    ({"groups": {"weights": 32}, **SCALED}, r"groups\['weights'\] must be two whole numbers above 0"),
    ({"groups": {"weights": (0, 1)}, **SCALED}, r"groups\['weights'\] must be two whole numbers above 0"),
    ({"groups": {"weights": (32, 1, 1)}, **SCALED}, r"groups\['weights'\] must be two whole numbers above 0"),
])  # fmt: skip
def test_groups_that_are_none(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidArguments, match=says):
        dnn.Attr(**options)


def t(*dims: int, dtype: dnn.DataType = dnn.f32) -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dtype, "any")


@pytest.mark.parametrize(("options", "weights", "says"), [
    ({"groups": {"weights": (48, 1)}}, t(64, 4, dtype=dnn.s4), r"are \(48, 1\), which do not divide k"),
    ({"groups": {"weights": (8, 1)}}, t(64, 4, dtype=dnn.s4), r"are \(8, 1\), they must be of 16 to 256"),
    ({"groups": {"weights": (32, 2)}}, t(64, 4, dtype=dnn.s4), "and of 1 column"),
    ({}, t(64, 4, dtype=dnn.s4), "scales of mask 3 are by groups"),
    ({"scales": {"weights": 1}}, t(64, 4, dtype=dnn.s4), "scales of weights have the mask 1: it is 0, 2, or 3"),
    ({"scales": {"src": 0, "weights": 0}}, t(64, 4, dtype=dnn.s4), "scales and zero points are not of weights alone"),
    (GROUPS, t(64, 4), "f32 times f32 to f32 is not floats times integers"),
    ({**GROUPS, "accumulation_mode": "s32"}, t(64, 4, dtype=dnn.u8), "sums are f32 here"),
    ({**GROUPS, "post_ops": [dnn.Sum()]}, t(64, 4, dtype=dnn.s4), "post-op sum is not implemented"),
])  # fmt: skip
def test_what_kernels_refuse(options: dict[str, Any], weights: dnn.MemoryDesc, says: str) -> None:
    desc, attr = dnn.MatMul(t(2, 64), weights, t(2, 4)), dnn.Attr(**{**SCALED, **options})
    if "divide" in says:
        with pytest.raises(InvalidArguments, match=says):
            dnn.primitive_desc(desc, attr)
    else:
        assert re.search(says, reason_of(desc, attr))


def test_other_kinds_have_no_groups() -> None:
    attr = dnn.Attr(scales={"src": 3}, groups={"src": (32, 1)})
    with pytest.raises(InvalidArguments, match="only weights of MatMul have scales by groups"):
        dnn.primitive_desc(dnn.InnerProductForward(t(2, 64), t(4, 64), t(2, 4)), attr)
