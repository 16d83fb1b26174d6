"""Inner products of bf16, f16 and bytes: layouts of images and weights, sums of columns, zero points, scales, bias."""

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.values import decoded
from asmdnn.memory.summed import SummedDesc
from asmdnn.types import DATA_TYPES
from tests.primitives.test_quantized_masks import drawn
from tests.primitives.typed_case import TypedCase, compare
from tests.support.drawing import RANDOM
from tests.support.plans import proved_desc

LEVELS = ("avx2", "avx512_core_vnni", "avx512_core_bf16")


@dataclass(frozen=True, slots=True)
class IpCase:
    """product: of src's channels and positions as k.  tags: of src, weights, dst."""

    product: TypedCase
    positions: tuple[int, ...] = ()
    tags: tuple[str, str, str] = ("any", "any", "any")
    post_ops: tuple[Any, ...] = ()

    def planned(self, level: str) -> dnn.PrimitiveDesc:
        p, types = self.product, self.product.dtypes()
        ic = p.k // prod(self.positions)
        dims = {"src": (p.m, ic, *self.positions), "weights": (p.n, ic, *self.positions), "dst": (p.m, p.n)}
        descs = {name: dnn.MemoryDesc(dims[name], types[i], self.tags[i]) for i, name in enumerate(dims)}
        if p.bias:
            descs["bias"] = dnn.MemoryDesc((p.n,), DATA_TYPES[p.bias], "a")
        attr = replace(
            p.attr(),
            post_ops=self.post_ops,
            scales={"weights": 1} if p.scaled else {},
            zero_points=dict(p.attr().zero_points),
        )
        return proved_desc(dnn.InnerProductForward(**descs), attr, dnn.Engine(isa=level, machine="zen3"))


def check(case: IpCase, level: str) -> dnn.PrimitiveDesc:
    """Run it, and compare every element with the product of matrices."""
    p, pd = case.product, case.planned(level)
    data = p.data()
    wanted, tolerance = p.expected(data, level)
    memories = {}
    for name, desc in pd.plan.tensors.items():
        array = data[name].T if name == "weights" else data[name]
        memories[name] = dnn.Memory.from_numpy(np.ascontiguousarray(array).reshape(desc.dims), desc)
    dnn.Primitive(pd).execute(**memories)
    result = dnn.Memory.from_numpy(memories["dst"].numpy(), dnn.MemoryDesc((p.m, p.n), p.dtypes()[2], "ab"))
    compare(result, p, wanted, tolerance)
    return pd


TYPES = ("bf16:bf16:bf16", "f16:f16:f32", "u8:s8:s32", "s8:s8:u8", "f32:f32:bf16", "f32:s8:f32")
SHAPES = (
    ((1, 70, 96), ()),
    ((5, 33, 31), ()),
    ((3, 40, 8 * 9), (3, 3)),
    ((2, 21, 3 * 35), (5, 7)),
    ((4, 17, 4 * 8), (2, 2, 2)),
    ((1, 64, 16 * 5), (5,)),
)


@pytest.mark.parametrize("level", [pytest.param(x, marks=pytest.mark.isa(x)) for x in LEVELS])
@pytest.mark.parametrize("types", TYPES)
def test_types(level: str, types: str) -> None:
    for i, ((m, n, k), positions) in enumerate(SHAPES):
        zero_point = 7 if types.startswith(("u8", "s8")) and i % 2 else None
        scaled = not types.endswith("s32")
        product = TypedCase(m, n, k, types, bias="f32" if scaled else "", zero_points=(zero_point, None), scaled=scaled)
        check(IpCase(product, positions), level)


PLAIN = {2: ("ab", "ba"), 3: ("abc", "acb"), 4: ("abcd", "acdb"), 5: ("abcde", "acdeb")}


@pytest.mark.parametrize("level", [pytest.param("avx512_core_bf16", marks=pytest.mark.isa("avx512_core_bf16"))])
@pytest.mark.parametrize("types", ["bf16:bf16:f32", "s8:s8:s32"])
def test_layouts(level: str, types: str) -> None:
    """Of src and of weights each: equal orders are views, others are copied; blocked ones, too."""
    for (m, n, k), positions in SHAPES:
        tags = PLAIN[2 + len(positions)]
        for src in tags:
            for weights in ("any", *tags):
                check(IpCase(TypedCase(m, n, k, types), positions, (src, weights, "ab")), level)
    for src, weights in (
        ("aBcd8b", "any"),
        ("aBcd16b", "abcd"),
        ("acdb", "AcdB16a2b" if "bf16" in types else "AcdB16a4b"),
    ):
        check(IpCase(TypedCase(3, 40, 8 * 9, types), (3, 3), (src, weights, "ba")), level)


def test_weights_of_any_format() -> None:
    """Panels where blocks of k divide the innermost dim, with sums of columns for what is shifted; nothing is packed in
    a call then."""
    for positions, tag in (((), "AB32a4b"), ((3, 3), "AcdB32a4b"), ((2, 2, 2), "AcdeB32a4b")):
        pd = IpCase(TypedCase(5, 64, 8 * prod(positions), "s8:s8:s32"), positions).planned("avx512_core_vnni")
        assert pd.implementation == "tiles:avx512_core_vnni" and str(pd.weights_desc).endswith(f"sums:{tag}")
        assert isinstance(pd.weights_desc, SummedDesc) and pd.weights_desc.mask == 1
        assert str(pd.plan.tensors["src"].tag) == "a" + "cde"[: len(positions)] + "b"
        pd = IpCase(TypedCase(5, 64, 8 * prod(positions), "u8:s8:s32"), positions).planned("avx512_core_vnni")
        assert pd.weights_desc.tag == tag
    for rows, way in ((5, "dots"), (9, "pack_weights")):
        pd = IpCase(TypedCase(rows, 64, 3 * 49, "u8:s8:s32"), (7, 7)).planned("avx512_core_vnni")
        assert pd.weights_desc.tag == "acdb" and way in pd.implementation


def test_one_image_reads_weights_along_k() -> None:
    for types in ("bf16:bf16:bf16", "u8:s8:s32"):
        pd = IpCase(TypedCase(1, 64, 512, types), (), ("ab", "ab", "ab")).planned("avx512_core_bf16")
        assert pd.implementation.startswith("dots")


def test_post_ops_and_what_dst_held() -> None:
    product = TypedCase(4, 40, 64, "u8:s8:s8", scaled=True)
    pd = IpCase(product, (), ("any",) * 3, (dnn.Sum(0.5), dnn.Eltwise("relu"))).planned("avx2")
    data = product.data()
    memories = {
        name: dnn.Memory.from_numpy(np.ascontiguousarray(data[name].T if name == "weights" else data[name]), desc)
        for name, desc in pd.plan.tensors.items()
    }
    dnn.Primitive(pd).execute(**memories)
    exact = data["src"].astype(np.float64) @ data["weights"] * data["weights_scales"] + 0.5 * data["dst"]
    assert np.abs(decoded(memories["dst"].array, dnn.s8).reshape(4, 40) - np.clip(exact, 0, 127)).max() <= 0.501


@pytest.mark.parametrize(
    ("attr", "message"),
    [
        (dnn.Attr(scales={"weights": 2}), "scales of weights have the mask 2: only dim 0 of weights can have scales"),
        (dnn.Attr(zero_points={"weights": 2}), "zero points of weights have the mask 2: only dim 0 of weights"),
        (dnn.Attr(zero_points={"src": 2}), "zero points of src have the mask 2: only dim 0 of src"),
        (dnn.Attr(scales={"src": 4}), "scales of src have the mask 4: only dim 0 of src can have scales"),
    ],
)
def test_bad_attributes(attr: dnn.Attr, message: str) -> None:
    src, weights, dst = (dnn.MemoryDesc((4, 4), kind, "ab") for kind in (dnn.u8, dnn.s8, dnn.f32))
    with pytest.raises(dnn.Unimplemented, match=message):
        dnn.primitive_desc(dnn.InnerProductForward(src, weights, dst), attr, dnn.Engine(isa="avx2"))


POINTS = [{"weights": 0}, {"weights": 1, "src": 0}, {"weights": 1, "src": 1, "dst": 2}, {}]  # masks


@pytest.mark.parametrize("level", [pytest.param(x, marks=pytest.mark.isa(x)) for x in LEVELS])
@pytest.mark.parametrize("points", POINTS, ids=str)
@pytest.mark.parametrize("src", ["u8", "s8"])
def test_zero_points_of_weights_and_u8_weights(level: str, points: dict[str, int], src: str) -> None:
    """Sums are exact, whatever the order of images and weights; zero points come with the call."""
    for weights, tags, positions in (
        ("u8", ("abcd", "acdb"), (3, 5)), ("u8", ("any", "any"), (3, 5)), ("s8", ("acdb", "abcd"), (2, 2)),
        ("s8", ("ab", "any"), ()), ("u8", ("ab", "ba"), ()),
    ):  # fmt: skip
        if weights == "s8" and "weights" not in points:
            continue
        dims = {"src": (5, 12, *positions), "weights": (33, 12, *positions), "dst": (5, 33), "bias": (33,)}
        kinds = {"src": src, "weights": weights, "dst": "s32", "bias": "s32"}
        formats = {"src": tags[0], "weights": tags[1], "dst": "ab", "bias": "a"}
        descs = {name: dnn.MemoryDesc(dims[name], DATA_TYPES[kinds[name]], formats[name]) for name in dims}
        engine = dnn.Engine(isa=level, machine="zen3")  # type: ignore[arg-type]
        pd = proved_desc(dnn.InnerProductForward(**descs), dnn.Attr(zero_points=points), engine)  # type: ignore[arg-type]
        assert "integers+" in pd.implementation
        given = {name: drawn(name, desc) for name, desc in pd.plan.tensors.items() if name != "dst"}
        memories = {
            name: dnn.Memory.from_numpy(x.astype(pd.plan.tensors[name].dtype.numpy), pd.plan.tensors[name])
            for name, x in given.items()
        }
        dst = dnn.Memory(pd.dst_desc)
        dnn.Primitive(pd).execute(**memories, dst=dst)
        x, w = (given[name] - point_of(given, name, dims[name]) for name in ("src", "weights"))
        wanted = x.reshape(5, -1) @ w.reshape(33, -1).T + given["bias"] + given.get("dst_zero_points", 0)
        np.testing.assert_array_equal(dst.numpy(), wanted)


@pytest.mark.isa("avx2")
def test_arrays_of_unsigned_bytes() -> None:
    x, w = (RANDOM.integers(0, 256, dims).astype(np.uint8) for dims in ((3, 4, 2, 2), (5, 4, 2, 2)))
    found = dnn.ops.inner_product(x, w, zero_points={"x": 100, "weights": 3})
    np.testing.assert_array_equal(found, (x.reshape(3, -1) - np.int64(100)) @ (w.reshape(5, -1) - np.int64(3)).T)


def point_of(given: dict[str, Any], name: str, dims: tuple[int, ...]) -> Any:
    """Common, or for each index of the first dim."""
    points = given.get(f"{name}_zero_points", np.zeros(1, np.int64))
    return points.reshape(-1, *[1] * (len(dims) - 1))


def test_bad_types() -> None:
    descs = (dnn.MemoryDesc((4, 4), kind, "any") for kind in (dnn.s8, dnn.bf16, dnn.s32))
    with pytest.raises(dnn.Unimplemented, match="does not multiply s8 by bf16"):
        dnn.primitive_desc(dnn.InnerProductForward(*descs), engine=dnn.Engine(isa="avx2"))


@pytest.mark.isa("avx2")
def test_nothing_to_do() -> None:
    for m, n, k in ((0, 4, 8), (4, 0, 8), (2, 3, 0)):
        check(IpCase(TypedCase(m, n, k, "u8:s8:s32"), (), ("ab", "ab", "ab")), "avx2")
        check(IpCase(TypedCase(m, n, k, "s8:s8:s32"), ()), "avx2")
