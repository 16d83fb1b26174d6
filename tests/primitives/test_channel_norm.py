"""What batch and group normalization have beside tests/conformance: chunks, statistics, fused relu, large data."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.definitions.normalization import by_channels, by_groups
from asmdnn.definitions.normalization import moments as statistics
from asmdnn.definitions.normalization import normalized as norm
from tests.support.plans import emulate_plan, proved_desc
from tests.support.tuning import tuned

INFERENCE = dnn.PropKind.forward_inference
EPSILON = 1e-5


def numbers(*dims: int, seed: int = 0, mean: float = 1.0) -> Any:
    return (np.random.default_rng(seed).standard_normal(dims) + mean).astype(np.float32)


def moments(x: Any, groups: int | None) -> tuple[Any, Any]:
    """Of a batch's channels, or of groups, for each element."""
    return statistics(by_groups(x.astype(np.float64), groups or x.shape[1]), (2, 3) if groups else (0, 2, 3))


def normalized(x: Any, found: tuple[Any, Any], groups: int | None, scale: Any, shift: Any) -> Any:
    result = norm(by_groups(x.astype(np.float64), groups or x.shape[1]), *found, EPSILON).reshape(x.shape)
    return result * by_channels(scale, x.ndim) + by_channels(shift, x.ndim)


def described(dims: tuple[int, ...], tag: str, groups: int | None, kept: bool = False, given: bool = False) -> Any:
    desc, vector = dnn.MemoryDesc(dims, dnn.f32, tag), dnn.MemoryDesc(dims[1:2], dnn.f32, "a")
    statistics = vector if groups is None else dnn.MemoryDesc((dims[0], groups), dnn.f32, "ab")
    more = {"mean": statistics, "variance": statistics} if kept else {}
    optional = {"scale": vector, "shift": vector, **more, "use_global_stats": given}
    if groups is None:
        return dnn.BatchNormForward(INFERENCE, desc, desc, EPSILON, **optional)
    return dnn.GroupNormForward(INFERENCE, desc, desc, groups, EPSILON, **optional)


@pytest.mark.parametrize("kind", ["computed", "written", "given"])
@pytest.mark.parametrize("groups", [None, 1, 4, 16], ids=str)
@pytest.mark.parametrize(
    ("dims", "tag"),
    [((3, 16, 5, 9), "abcd"), ((3, 16, 5, 9), "acdb"), ((2, 16, 30), "aBc8b"), ((5, 16), "ab")],
    ids=str,
)
def test_layouts(isa: str, dims: tuple[int, ...], tag: str, groups: int | None, kind: str) -> None:
    desc = described(dims, tag, groups, kind != "computed", kind == "given")
    with tuned("reduction", row_elements=9, chunk_elements=40, merged=3):
        pd = proved_desc(desc, engine=dnn.Engine(isa=isa, threads=2))
    way = "given_statistics" if kind == "given" else f"{'group' if groups else 'batch'}_norm"
    assert pd.implementation.removeprefix("reorder+") == f"{way}:{isa}"
    memories = {
        name: dnn.Memory.from_numpy(np.abs(numbers(*d.dims, seed=i)) + np.float32(0.25), d)
        for i, (name, d) in enumerate(pd.plan.tensors.items())
    }
    x = numbers(*dims)
    memories["src"] = dnn.Memory.from_numpy(x, memories["src"].desc)
    arrays = {name: memory.numpy().copy() for name, memory in memories.items()}
    found = moments(x, groups)
    if kind == "given":
        found = (arrays["mean"].reshape(found[0].shape), arrays["variance"].reshape(found[0].shape))
    dnn.Primitive(pd).execute(**memories)
    wanted = normalized(x, found, groups, arrays["scale"], arrays["shift"])
    np.testing.assert_allclose(memories["dst"].numpy(), wanted, 2e-5, 2e-5)
    if kind == "written":
        for name, values in zip(("mean", "variance"), found, strict=True):
            np.testing.assert_allclose(memories[name].numpy().ravel(), values.ravel(), 1e-5, 1e-6)


@pytest.mark.parametrize("groups", [None, 5], ids=str)
def test_padded_blocks(isa: str, groups: int | None) -> None:
    x, desc = numbers(2, 20, 3, 4), described((2, 20, 3, 4), "aBcd8b", groups)
    pd = proved_desc(desc, dnn.Attr([dnn.Eltwise("relu")]), dnn.Engine(isa=isa, threads=1))
    assert "plain src" not in pd.plan.scratch_bytes  # padding counts as channels, nothing is copied
    ones, dst = dnn.Memory.from_array(np.ones(20, np.float32)), dnn.Memory(desc.dst)
    dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x, desc.src), dst=dst, scale=ones, shift=ones)
    wanted = normalized(x, moments(x, groups), groups, np.ones(20), np.ones(20))
    np.testing.assert_allclose(dst.numpy(), np.maximum(wanted, 0), 2e-5, 2e-5)
    assert dst.padding_is_zero()


def test_arrays(isa: str) -> None:
    """Threads, post-ops, in place."""
    x, scale, shift, other = numbers(3, 8, 30), numbers(8, seed=1), numbers(8, seed=2), numbers(3, 8, 30, seed=3)
    chain = [dnn.PostOp(lambda x, other: x + other, other=other), dnn.Eltwise("relu")]
    engines = [dnn.Engine(isa=isa, threads=n) for n in (1, 2, 3)]
    for groups in (None, 2):

        def run(engine: dnn.Engine, out: Any = None, groups: int | None = groups) -> Any:
            if groups is None:
                return dnn.ops.batch_norm(x, scale, shift, post_ops=chain, out=out, engine=engine)
            return dnn.ops.group_norm(x, groups, scale, shift, post_ops=chain, out=out, engine=engine)

        results = [run(engine) for engine in engines]
        wanted = np.maximum(normalized(x, moments(x, groups), groups, scale, shift) + other, 0)
        np.testing.assert_allclose(results[0], wanted, 2e-5, 2e-5)
        assert np.array_equal(results[0], results[1])
        assert np.array_equal(results[0], results[2])
    variance = np.abs(scale) + 1
    found = dnn.ops.batch_norm(x, mean=shift, variance=variance, engine=engines[0])
    np.testing.assert_allclose(found, (x - shift[:, None]) / np.sqrt(variance[:, None] + EPSILON), 1e-5, 1e-5)
    apart = [np.repeat(vector, 3)[::3] for vector in (scale, shift, variance)]
    again = dnn.ops.batch_norm(x, apart[0], apart[1][::-1], mean=shift, variance=apart[2], engine=engines[0])
    dense = dnn.ops.batch_norm(x, scale, shift[::-1].copy(), mean=shift, variance=variance, engine=engines[0])
    assert np.array_equal(again, dense)
    copied = x.copy()
    assert dnn.ops.batch_norm(copied, scale, shift, out=copied, engine=engines[0]) is copied
    np.testing.assert_allclose(copied, normalized(x, moments(x, None), None, scale, shift), 2e-5, 2e-5)
    assert dnn.ops.batch_norm(np.zeros((0, 4, 5), np.float32)).shape == (0, 4, 5)


@pytest.mark.parametrize("tag", ["abc", "aBc8b"])
def test_vectors_whose_elements_lie_apart(isa: str, tag: str) -> None:
    """Scale and shift that are read, statistics that are written: copied before and after."""
    x, wide = np.random.default_rng(0).uniform(-2, 2, (3, 9, 5)).astype(np.float32), dnn.MemoryDesc((9,), dnn.f32, "a")
    every_third = dnn.MemoryDesc((9,), dnn.f32, strides=(3,))
    desc = dnn.MemoryDesc(x.shape, dnn.f32, tag)
    results = []
    for vector in (wide, every_third):
        parameters = dict.fromkeys(("scale", "shift", "mean", "variance"), vector)
        norm = dnn.BatchNormForward(dnn.PropKind.forward_training, desc, desc, 1e-5, **parameters)
        pd = dnn.primitive_desc(norm, engine=dnn.Engine(isa=isa, threads=2))
        assert pd.implementation == ("reorder+" if vector is every_third else "") + f"batch_norm:{isa}"
        pd.plan.check()
        memories = {name: dnn.Memory(tensor) for name, tensor in pd.plan.tensors.items()}
        for name, values in (("src", x), ("scale", np.arange(9)), ("shift", -np.arange(9))):
            memories[name] = dnn.Memory.from_numpy(values.astype(np.float32), pd.plan.tensors[name])
        dnn.Primitive(pd).execute(**memories)
        results.append([memories[name].numpy() for name in ("dst", "mean", "variance")])
    assert all(np.array_equal(apart, dense) for dense, apart in zip(*results, strict=True))


def test_a_scale_that_is_every_second_element(isa: str) -> None:
    x, scale, engine = numbers(3, 9, 5), np.arange(18, dtype=np.float32)[::2], dnn.Engine(isa=isa)
    found = dnn.ops.group_norm(x, 3, scale, engine=engine)
    assert np.array_equal(found, dnn.ops.group_norm(x, 3, scale.copy(), engine=engine))


@pytest.mark.parametrize("tag", ["abc", "acb"])
def test_large_means(isa: str, tag: str) -> None:
    """Statistics of many elements with a large mean keep six digits."""
    x = numbers(4, 3, 200_000, mean=1000.0)
    desc = described(x.shape, tag, None, kept=True)
    src = dnn.Memory.from_numpy(x, desc.src)
    mean, variance, ones = (dnn.Memory(dnn.MemoryDesc((3,), dnn.f32, "a")) for _ in range(3))
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa, threads=2))
    dnn.Primitive(pd).execute(src=src, dst=src, mean=mean, variance=variance, scale=ones, shift=ones)
    wanted = moments(x, None)
    np.testing.assert_allclose(mean.numpy(), wanted[0].ravel(), 1e-6)
    np.testing.assert_allclose(variance.numpy(), wanted[1].ravel(), 1e-6)


def fused(dims: tuple[int, ...], tag: str, fuse: Any) -> Any:
    """Training with relu and its mask."""
    desc, vector = dnn.MemoryDesc(dims, dnn.f32, tag), dnn.MemoryDesc(dims[1:2], dnn.f32, "a")
    mask = dnn.MemoryDesc(dims, dnn.u8, "any")
    return dnn.BatchNormForward(
        dnn.PropKind.forward_training, desc, desc, EPSILON, vector, vector, vector, vector, fuse=fuse,
        src_1=desc if fuse == "norm_add_relu" else None, workspace=mask,
    )  # fmt: skip


def check_fused(desc: Any, memories: dict[str, dnn.Memory]) -> None:
    """dst, and the mask wherever rounding cannot change it."""
    arrays = {name: memory.numpy().astype(np.float64) for name, memory in memories.items()}
    x = arrays["src"]
    plain = normalized(x, moments(x, None), None, arrays["scale"], arrays["shift"]) + arrays.get("src_1", 0)
    np.testing.assert_allclose(arrays["dst"], np.maximum(plain, 0), 2e-5, 2e-5)
    clear = np.abs(plain) > 1e-4
    np.testing.assert_array_equal(arrays["workspace"][clear], (plain > 0)[clear])
    assert memories["workspace"].padding_is_zero()
    assert memories["workspace"].desc.tag == desc.dst.tag


def filled(tensors: Any) -> dict[str, dnn.Memory]:
    """Numbers, and a mask that is not one."""
    return {
        name: dnn.Memory.from_numpy(
            numbers(*d.dims, seed=i, mean=0.1) if d.dtype == dnn.f32 else np.full(d.dims, 7, np.uint8), d
        )
        for i, (name, d) in enumerate(tensors.items())
    }


@pytest.mark.parametrize("fuse", ["norm_relu", "norm_add_relu"])
@pytest.mark.parametrize("tag", ["abcd", "acdb", "aBcd8b", "aBcd16b"])
def test_fused_relu_and_its_mask(isa: str, tag: str, fuse: str) -> None:
    for dims in ((2, 16, 3, 5), (2, 20, 3, 4)):
        desc, masks = fused(dims, tag, fuse), []
        for threads in (1, 2):
            pd = proved_desc(desc, engine=dnn.Engine(isa=isa, threads=threads))
            assert pd.implementation == f"batch_norm:{isa}"
            memories = filled(pd.plan.tensors)
            dnn.Primitive(pd).execute(**memories)
            check_fused(desc, memories)
            masks.append(memories["workspace"].array.copy())
        assert np.array_equal(*masks)


@pytest.mark.emulated("avx512_core")
def test_fused_relu_emulated() -> None:
    desc = fused((2, 6, 5), "abc", "norm_add_relu")
    pd = proved_desc(desc, engine=dnn.Engine(isa="avx512_core"))
    memories = filled(pd.plan.tensors)
    emulate_plan(pd.plan, memories)
    check_fused(desc, memories)


def test_fused_relu_of_torch(isa: str) -> None:
    torch = pytest.importorskip("torch", reason="not compared with torch: pip install '.[torch]'")
    pd = dnn.primitive_desc(fused((3, 5, 7, 7), "abcd", "norm_add_relu"), engine=dnn.Engine(isa=isa))
    memories = filled(pd.plan.tensors)
    dnn.Primitive(pd).execute(**memories)
    x, scale, shift, added = (torch.from_numpy(memories[name].numpy()) for name in ("src", "scale", "shift", "src_1"))
    plain = torch.nn.functional.batch_norm(x, None, None, scale, shift, True, eps=EPSILON) + added
    np.testing.assert_allclose(memories["dst"].numpy(), torch.relu(plain).numpy(), 1e-4, 1e-4)


@pytest.mark.slow
def test_a_hundred_million_elements(isa: str) -> None:
    """A mean of 1000 and a variance of 1 keep six digits, along rows and down them."""
    random = np.random.default_rng(0)
    x = np.concatenate([random.standard_normal(10**7).astype(np.float32) + np.float32(1000) for _ in range(10)])
    for dims, tag in (((1, 1, 10**8), "abc"), ((1, 2, 5 * 10**7), "acb")):
        desc = described(dims, tag, None, kept=True)
        src, memory = dnn.Memory.from_numpy(x.reshape(dims), desc.src), dnn.Memory(desc.dst)
        mean, variance, ones = (dnn.Memory(dnn.MemoryDesc(dims[1:2], dnn.f32, "a")) for _ in range(3))
        pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa, threads=1))
        dnn.Primitive(pd).execute(src=src, dst=memory, mean=mean, variance=variance, scale=ones, shift=ones)
        for channel, part in enumerate(x.reshape(dims[1], -1)):
            wanted = part.mean(dtype=np.float64), part.var(dtype=np.float64)
            np.testing.assert_allclose((mean.numpy()[channel], variance.numpy()[channel]), wanted, 1e-6)


@pytest.mark.parametrize(("tag", "lanes"), [("aBcd8b", 8), ("aBcd16b", 16)])
def test_rows_of_small_planes_follow_one_another(tag: str, lanes: int) -> None:
    """A call has the pixels of a block of channels, although there are more blocks than pixels."""
    desc = described((2, 2048, 7, 7), tag, None)
    plan = dnn.primitive_desc(desc, engine=dnn.Engine(isa="avx2", machine="zen3")).plan
    (kernel,) = plan.phases[-1].kernels
    assert kernel.name.startswith(f"map_f32_49x{lanes}_")


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("shape", [(2, 3, 5, 5), (1, 9, 1, 2)])
def test_a_negative_variance_is_nan_in_its_channel_alone(shape: tuple[int, ...]) -> None:
    x, variance = numbers(*shape), np.ones(shape[1], np.float32)
    variance[1] = -0.5
    found = dnn.ops.batch_norm(x, mean=np.zeros(shape[1], np.float32), variance=variance)
    assert np.isnan(found[:, 1]).all()
    others = [0, *range(2, shape[1])]
    np.testing.assert_allclose(found[:, others], x[:, others] / np.sqrt(np.float32(1 + 1e-5)), rtol=1e-6)


def test_bad_input() -> None:
    desc, vector, pair = (dnn.MemoryDesc(d, dnn.f32, "abc"[: len(d)]) for d in ((2, 6, 3), (6,), (2, 3)))
    for arguments, says in (
        ({"dst": vector}, "dst has dims"),
        ({"scale": pair}, r"scale has dims \(2, 3\), they must be \(6,\)"),
        ({"mean": vector}, "lacks variance"),
        ({"use_global_stats": True}, "needs mean and variance"),
        ({"epsilon": float("inf")}, "epsilon must be a finite"),
    ):
        with pytest.raises(dnn.InvalidArguments, match=says):
            dnn.BatchNormForward(**{"prop_kind": INFERENCE, "src": desc, "dst": desc} | arguments)  # type: ignore[arg-type]
    mask = dnn.MemoryDesc((2, 6, 3), dnn.u8, "abc")
    training = {"prop_kind": dnn.PropKind.forward_training, "src": desc, "dst": desc}
    for arguments, says in (
        ({"fuse": "relu"}, "fuse must be one of none, norm_relu, norm_add_relu"),
        ({"fuse": "norm_add_relu"}, "src_1 is what norm_add_relu adds"),
        ({"fuse": "norm_relu", "src_1": desc}, "src_1 is what norm_add_relu adds"),
        ({"fuse": "norm_add_relu", "src_1": pair}, "src_1 has dims"),
        ({"workspace": mask}, "workspace is of forward_training with a fused relu"),
        ({"fuse": "norm_relu", "workspace": desc}, "workspace is f32, a mask is u8"),
    ):
        with pytest.raises(dnn.InvalidArguments, match=says):
            dnn.BatchNormForward(**training | arguments)  # type: ignore[arg-type]
    other = dnn.MemoryDesc((2, 6, 3), dnn.u8, "acb")
    with pytest.raises(dnn.Unimplemented, match="it must be in dst's format"):
        dnn.primitive_desc(dnn.BatchNormForward(**training, fuse="norm_relu", workspace=other))  # type: ignore[arg-type]
    with pytest.raises(dnn.InvalidArguments, match="groups is 4, it must divide the 6 channels"):
        dnn.GroupNormForward(INFERENCE, desc, desc, 4)
    with pytest.raises(dnn.InvalidArguments, match="groups must be a whole number"):
        dnn.GroupNormForward(INFERENCE, desc, desc, 0)
    with pytest.raises(dnn.InvalidArguments, match=r"mean has dims \(6,\), they must be \(2, 3\)"):
        dnn.GroupNormForward(INFERENCE, desc, desc, 3, mean=vector, variance=vector)


def test_torch(isa: str) -> None:
    torch = pytest.importorskip("torch", reason="not compared with torch: pip install '.[torch]'")
    x, scale, shift = numbers(4, 6, 50), numbers(6, seed=1), numbers(6, seed=2)
    tensors = [torch.from_numpy(array) for array in (x, scale, shift)]
    found = dnn.ops.group_norm(x, 3, scale, shift, engine=dnn.Engine(isa=isa))
    np.testing.assert_allclose(found, torch.nn.functional.group_norm(tensors[0], 3, *tensors[1:]).numpy(), 1e-4, 1e-4)
