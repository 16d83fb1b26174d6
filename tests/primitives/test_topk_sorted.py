"""The k best by sorting: which shapes it serves, every size and order of data, and what many rows share."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.support.plans import emulate_plan

SPECIAL = np.float32([np.nan, np.inf, -np.inf, -0.0, 0.0, 3e38, -3e38])


def described(dims: tuple[int, ...], k: int, axis: int = -1, alg: str = "max", **more: Any) -> dnn.TopKForward:
    axis %= len(dims)
    results = tuple(k if dim == axis else n for dim, n in enumerate(dims))
    tag = more.pop("tag", "abcd"[: len(dims)])
    src, dst = dnn.MemoryDesc(dims, dnn.f32, tag), dnn.MemoryDesc(results, dnn.s32, "any")
    return dnn.TopKForward(alg, src, dst, axis, dnn.MemoryDesc(results, dnn.f32, "any"), **more)  # type: ignore[arg-type]


def ranked(x: Any, desc: dnn.TopKForward) -> Any:
    """The k best places, from numpy's stable sort by three keys: NaN, the number, the index."""
    along = np.moveaxis(x, desc.axis, -1).astype(np.float64)
    numbers = np.nan_to_num(-along if desc.alg == "max" else along, nan=0, posinf=1e300, neginf=-1e300)
    apart = np.isnan(along) * (1 if desc.nan_last else -1)
    places = np.lexsort((np.broadcast_to(np.arange(along.shape[-1]), along.shape), numbers, apart))
    return np.moveaxis(places[..., : desc.k], -1, desc.axis)


def run(desc: dnn.TopKForward, x: Any, engine: dnn.Engine) -> tuple[str, Any, Any]:
    """The implementation, places and values."""
    pd = dnn.primitive_desc(desc, engine=engine)
    pd.plan.check()
    memories = {name: dnn.Memory(found) for name, found in pd.plan.tensors.items() if name != "src"}
    dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x, desc.src), **memories)
    return pd.implementation, memories["dst"].numpy(), memories["values"].numpy()


def arrays(dims: tuple[int, ...], axis: int) -> dict[str, Any]:
    """Of each order that data may have."""
    random = np.random.default_rng(0)
    x = random.standard_normal(dims).astype(np.float32)
    special = np.where(random.random(dims) < 0.3, random.choice(SPECIAL, dims), x)
    return {
        "random": x,
        "rising": np.sort(x, axis),
        "falling": -np.sort(-x, axis),
        "equal": np.full(dims, np.float32(-2)),
        "ties": np.round(x),
        "special": special,
        "NaN": np.full(dims, np.float32(np.nan)),
    }


@pytest.mark.parametrize(
    ("dims", "k", "axis", "name"),
    [
        ((3, 61), 50, 1, "sorted"), ((2, 64), 64, 1, "sorted"), ((5, 40), 11, 1, "sorted"), ((2, 256), 33, 1, "sorted"),
        ((2, 257), 33, 1, "sorted"), ((2, 300), 257, 1, "sorted"), ((3, 1000), 128, 1, "sorted"),
        ((1, 1025), 1025, 1, "sorted"), ((1, 5000), 100, 1, "sorted"), ((2, 3, 700), 600, 2, "sorted"),
        ((70, 5), 60, 0, "reorder+sorted"), ((2, 45, 3, 2), 40, 1, "reorder+sorted"),
    ],
)  # fmt: skip
def test_sizes_and_orders(isa: str, dims: tuple[int, ...], k: int, axis: int, name: str) -> None:
    engine = dnn.Engine(isa=isa)
    for what, x in arrays(dims, axis).items():
        for alg in ("max", "min"):
            for nan_last in (False, True):
                desc = described(dims, k, axis, alg, nan_last=nan_last)
                implementation, places, values = run(desc, x, engine)
                wanted = ranked(x, desc)
                assert implementation.split(":")[0] == name
                assert np.array_equal(places, wanted), (what, alg, nan_last)
                numbers = np.take_along_axis(x, wanted, axis)
                assert np.array_equal(values, numbers, equal_nan=True), (what, alg, nan_last)
                assert not np.signbit(values[values == 0]).any()


def test_blocked_and_permuted_formats(isa: str) -> None:
    x = arrays((2, 50, 3, 3), 1)["ties"]
    for axis, tag in ((1, "acdb"), (1, "aBcd8b"), (1, "abcd"), (0, "dcba")):
        k = 20 if axis else 2
        desc = described(x.shape, k, axis, tag=tag)
        implementation, places, values = run(desc, x, dnn.Engine(isa=isa))
        assert np.array_equal(places, ranked(x, desc)), tag
        assert np.array_equal(values, np.take_along_axis(x, places, axis))
        assert implementation.split(":")[0] == {"acdb": "sorted", "dcba": "rows"}.get(tag, "reorder+sorted")


@pytest.mark.slow
def test_many_random_shapes(isa: str) -> None:
    random = np.random.default_rng(5)
    for _ in range(300):
        n = int(2 ** random.uniform(0, 12))
        k, rows = int(random.integers(1, n + 1)), int(random.integers(1, 4))
        x = np.float32(random.choice([1, 3, 100]) * random.standard_normal((rows, n))).round(int(random.integers(3)))
        desc = described((rows, n), k, 1, str(random.choice(["max", "min"])), nan_last=bool(random.integers(2)))
        _, places, values = run(desc, x, dnn.Engine(isa=isa))
        assert np.array_equal(places, ranked(x, desc)), (x.shape, k)
        assert np.array_equal(values, np.take_along_axis(x, places, 1))


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize(("dims", "k"), [((2, 70), 70), ((1, 300), 40)])
def test_emulated(dims: tuple[int, ...], k: int) -> None:
    x, desc = arrays(dims, 1)["special"], described(dims, k)
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa="avx512_core", threads=1))
    results = {name: dnn.Memory(found) for name, found in pd.plan.tensors.items() if name != "src"}
    emulate_plan(pd.plan, {"src": dnn.Memory.from_numpy(x, desc.src), **results})
    assert np.array_equal(results["dst"].numpy(), ranked(x, desc))


@pytest.mark.parametrize("kind", [dnn.bf16, dnn.f16, dnn.s8, dnn.u8])
def test_other_types(isa: str, kind: Any) -> None:
    """Through f32, which has all their numbers."""
    random = np.random.default_rng(1)
    numbers = random.integers(0, 120, (3, 90)).astype(np.float32)
    desc = described((3, 90), 45)
    src = dnn.MemoryDesc((3, 90), kind, "ab")
    of_kind = dnn.TopKForward("max", src, desc.dst, 1, dnn.MemoryDesc((3, 45), kind, "ab"))
    pd = dnn.primitive_desc(of_kind, engine=dnn.Engine(isa=isa))
    pd.plan.check()
    assert pd.implementation.startswith("reorder+sorted")
    places, values = dnn.Memory(pd.plan.tensors["dst"]), dnn.Memory(pd.plan.tensors["values"])
    wide = dnn.MemoryDesc((3, 90), dnn.f32, "ab")
    memory, engine = dnn.Memory(src), dnn.Engine(isa=isa)
    dnn.Primitive(dnn.primitive_desc(dnn.Reorder(wide, src), engine=engine)).execute(
        src=dnn.Memory.from_numpy(numbers, wide), dst=memory
    )
    dnn.Primitive(pd).execute(src=memory, dst=places, values=values)
    assert np.array_equal(places.numpy(), ranked(numbers, desc))


def test_subnormal_numbers_keep_their_order(isa: str) -> None:
    """Unless they count as zeros."""
    numbers = np.float32(np.arange(-30, 30) * 1e-41)
    shuffled = np.random.default_rng(2).permutation(60)
    x, desc = numbers[shuffled][None], described((1, 60), 60)
    for denormals in ("keep", "flush"):
        pd = dnn.primitive_desc(desc, dnn.Attr(denormals=denormals), dnn.Engine(isa=isa))
        assert pd.implementation.startswith("sorted")
        results = {name: dnn.Memory(found) for name, found in pd.plan.tensors.items() if name != "src"}
        dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x, desc.src), **results)
        kept = x if denormals == "keep" else x * 0
        assert np.array_equal(results["dst"].numpy(), ranked(kept, desc))


def test_functions_and_networks(isa: str) -> None:
    engine = dnn.Engine(isa=isa)
    x = arrays((4, 300), 1)["ties"]
    values, places = dnn.ops.topk(x, 300, engine=engine)
    assert np.array_equal(values, -np.sort(-x, 1)) and np.array_equal(places, np.argsort(-x, 1, kind="stable"))
    g = dnn.Graph()
    smallest, positions = g.apply("TopK", g.input("x", (4, 300)), np.array([120]), results=2, largest=0, sorted=0)
    net = g.compile(values=smallest, positions=positions, engine=engine)
    found = net.run({"x": x})
    assert np.array_equal(found["values"], np.sort(x, 1)[:, :120])
    assert np.array_equal(found["positions"], np.argsort(x, 1, kind="stable")[:, :120])


def test_what_is_refused() -> None:
    """Post-ops, k above the axis, and pairs of 2 GiB; empty tensors have nothing to sort."""
    with pytest.raises(dnn.Unimplemented, match="post-ops"):
        dnn.primitive_desc(described((2, 90), 40), dnn.Attr([dnn.Sum()]))
    with pytest.raises(dnn.InvalidArguments, match="k is 91, src has 90 elements"):
        described((2, 90), 91)
    with pytest.raises(dnn.InvalidArguments, match="select_last is of one result, k is 40"):
        described((2, 90), 40, select_last=True)
    many = 1 << 28
    with pytest.raises(dnn.Unimplemented, match=rf"k is {many}, the pairs of a row would take 2 GiB or more"):
        dnn.primitive_desc(described((1, many), many))
    pd = dnn.primitive_desc(described((0, 90), 40))
    assert pd.implementation.startswith("rows") and not len(pd.plan.phases[0].records)
    answers = dnn.implementations(described((2, 90), 40), engine=dnn.Engine(isa="avx2", machine="zen4"))
    reasons = [str(x) for x in answers if isinstance(x, dnn.Refusal)]
    assert any("k is 40, rows have lists up to 10" in reason for reason in reasons), reasons


def test_long_rows_have_few_records() -> None:
    """About as many as CALLS says: more elements are sorted at a time."""
    for elements in (10**5, 10**6, 10**8):
        pd = dnn.primitive_desc(described((3, elements), 50), engine=dnn.Engine(isa="avx2", threads=1))
        (phase,) = pd.plan.phases
        assert 100 < len(phase.records) < 2100 and phase.rounds == 3 and pd.plan.scratchpad_bytes() < 1 << 24
