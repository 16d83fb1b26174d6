"""Packs in use: a process that refuses to import PeachPy computes from a pack, or a warm cache, and gets it right."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import asmdnn as dnn
from asmdnn.errors import InvalidArguments
from asmdnn.jit import packs
from asmdnn.primitives.core import packing
from asmdnn.primitives.core.implementation import plans
from asmdnn.runtime.execution import programs
from asmdnn.runtime.kernels import kernel_cache
from tests.support.python import NO_PEACHPY, python

ROOT = Path(__file__).parents[2]
L2_BYTES = 512 << 10

# Computes a convolution from integers, with and without a pack, in a process in which PeachPy is not installed.
SCRIPT = (
    NO_PEACHPY
    + """
import numpy as np
import asmdnn as dnn
pack, l2_bytes = sys.argv[1], int(sys.argv[2])
if pack:
    dnn.load_pack(pack)
rng = np.random.default_rng(7)
x, w, b = (rng.integers(-4, 5, s).astype(np.float32) for s in ((1, 24, 9, 9), (20, 24, 3, 3), (20,)))
dims = {"src": (1, 24, 9, 9), "weights": (20, 24, 3, 3), "dst": (1, 20, 9, 9)}
descs = {name: dnn.MemoryDesc(d, dnn.f32, "any") for name, d in dims.items()}
desc = dnn.ConvolutionForward(**descs, bias=dnn.MemoryDesc((20,), dnn.f32, "a"), padding_l=(1, 1), padding_r=(1, 1))
engine = dnn.Engine(threads=1, isa="avx2", l2_bytes=l2_bytes)
pd = dnn.primitive_desc(desc, dnn.Attr([dnn.Eltwise("relu")]), engine)
conv = dnn.Primitive(pd)
src, weights = (dnn.reorder(dnn.Memory.from_array(t), d, engine) for t, d in ((x, pd.src_desc), (w, pd.weights_desc)))
dst = dnn.Memory(pd.dst_desc)
conv.execute(src=src, weights=weights, bias=dnn.Memory.from_array(b), dst=dst)
padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
expected = b[None, :, None, None] + sum(
    np.einsum("nchw,oc->nohw", padded[:, :, r:r + 9, s:s + 9], w[:, :, r, s]) for r in range(3) for s in range(3)
)
assert np.array_equal(dst.numpy(), np.maximum(expected, 0)), "wrong result"
from asmdnn.runtime.kernels import kernel_cache
counts = kernel_cache().counts
print(json.dumps([counts.pack_hits > 0, counts.disk_hits > 0, counts.generated, "peachpy" in sys.modules]))
"""
)


RARE = """
import sys
import asmdnn as dnn
from asmdnn.memory.split import SplitDesc
tensor, tiles = dnn.MemoryDesc, "avx512_core_amx"
free = tensor((64, 256), dnn.s4, "any"), tensor((64, 256), dnn.f32, "any")
rows = [tensor((32, n), dnn.f32, "ab") for n in (64, 256)]
split = SplitDesc(tensor((192, 256), dnn.bf16, "BA32b2a"), 0)
requests = [
    (dnn.MatMul(rows[0], free[0], rows[1]), dnn.Attr(scales={"weights": 2}), "avx2"),
    (dnn.MatMul(rows[0], free[1], rows[1]), dnn.Attr(fpmath_mode="bf16x3"), tiles),
    (dnn.Reorder(tensor((64, 256), dnn.f32, "ab"), split), dnn.Attr(), tiles),
]
if sys.argv[2]:
    dnn.load_pack(sys.argv[1])
descs = [
    dnn.primitive_desc(desc, attr, dnn.Engine(isa=isa, threads=1, machine="sapphire_rapids"))
    for desc, attr, isa in requests
]
if not sys.argv[2]:
    dnn.write_pack(sys.argv[1], descs)
print(*(pd.implementation for pd in descs))
rare = {f"asmdnn.primitives.products.{name}" for name in ("weight_only", "thrice")}
print("of planners:", *(rare & sys.modules.keys()))
"""  # plans whose kernels and formats few processes need


def test_plans_that_few_processes_make(tmp_path: Path) -> None:
    """Their planners are not imported where a pack has the plans, only the specs of kernels."""
    path = tmp_path / "rare.asmdnn"
    names, planners = python(RARE, path, "").splitlines()
    assert names == "unpacking:avx2 bf16x3+amx+tiles:avx512_core_amx split:avx512_core"
    assert len(planners.split()) == 4
    assert python(RARE, path, "read").splitlines() == [names, "of planners:"]


def compute(pack: Path | str, l2_bytes: int = L2_BYTES, **environment: str) -> list[object]:
    """[kernels from packs, kernels from disk, kernels generated, PeachPy imported] of a new process."""
    return list(json.loads(python(SCRIPT, pack, l2_bytes, **environment)))


def descs(isa: str, l2_bytes: int = L2_BYTES) -> list[dnn.PrimitiveDesc]:
    """The convolution of SCRIPT with its reorders."""
    dims = {"src": (1, 24, 9, 9), "weights": (20, 24, 3, 3), "dst": (1, 20, 9, 9)}
    free = {name: dnn.MemoryDesc(d, dnn.f32, "any") for name, d in dims.items()}
    desc = dnn.ConvolutionForward(**free, bias=dnn.MemoryDesc((20,), dnn.f32, "a"), padding_l=(1, 1), padding_r=(1, 1))
    engine = dnn.Engine(isa=isa, threads=1, l2_bytes=l2_bytes)
    pd = dnn.primitive_desc(desc, dnn.Attr([dnn.Eltwise("relu")]), engine)
    plain = [dnn.Reorder(dnn.MemoryDesc(dims[n], dnn.f32, "abcd"), pd.plan.tensors[n]) for n in ("src", "weights")]
    return [pd, *(dnn.primitive_desc(r, engine=engine) for r in plain)]


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("packs") / "conv.pack"
    packing.write_pack(path, [pd for isa in ("avx2", "avx512_core") for pd in descs(isa)], {"l2_bytes": L2_BYTES})
    return path


@pytest.fixture
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(packs, "_loaded", [])
    plans.clear()
    yield
    plans.clear()


@pytest.mark.isa("avx2")
def test_without_peachpy_from_a_pack(pack: Path) -> None:
    assert compute(pack, ASMDNN_CACHE="0") == [True, False, 0, False]


@pytest.mark.isa("avx2")
def test_without_peachpy_on_a_machine_with_another_l2(pack: Path) -> None:
    """Its own planner would ask for other kernels: the pack's plan is used instead."""
    assert compute(pack, l2_bytes=1 << 12, ASMDNN_CACHE="0") == [True, False, 0, False]
    assert repr(descs("avx2", 1 << 12)[0].plan.specs) != repr(descs("avx2")[0].plan.specs), "the case is no case"


@pytest.mark.isa("avx2")
def test_without_peachpy_from_a_warm_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs.clear()  # kernels that other tests hold may be those of packs, and on no disk
    kernel_cache.cache_clear()
    for pd in descs("avx2"):
        dnn.Primitive(pd)  # in this process's cache, which the tests keep on disk
    assert compute("", ASMDNN_CACHE="1") == [False, True, 0, False]


def test_a_pack_made_here_for_avx512(pack: Path, nothing_loaded: None) -> None:
    loaded = dnn.load_pack(pack)
    assert loaded.isas == ("avx2", "avx512_core")
    assert loaded.plans == 6
    (found, *_) = descs("avx512_core")
    assert not found.plan.phases[0].records.flags.owndata, "planned anew"
    found.plan.check()
    plans.clear()
    packs._loaded.clear()
    planned = descs("avx512_core")[0]
    assert planned.plan.phases[0].records.flags.owndata
    assert found.plan.specs == planned.plan.specs


def test_loading_twice_and_from_many_threads(pack: Path, nothing_loaded: None) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        loaded = list(pool.map(dnn.load_pack, [pack] * 32))
    assert all(one == loaded[0] for one in loaded)
    assert dnn.load_pack(str(pack)) in packs.loaded()


@pytest.mark.parametrize("name", ["asmdnn", "PeachPy", "generators", "planners"])
def test_another_version_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_loaded: None
) -> None:
    mine = packing.versions()
    with monkeypatch.context() as patch:
        patch.setattr(packing, "versions", lambda: mine | {name: "other"})
        packing.write_pack(tmp_path / "x.pack", descs("avx2"), {})
    with pytest.raises(InvalidArguments, match=f"was made with {name} other, this is .*: make it again") as caught:
        dnn.load_pack(tmp_path / "x.pack")
    assert "\n" not in str(caught.value)
    assert packs.loaded() == ()
    assert packing.read_pack(tmp_path / "x.pack").kernels > 0, "it can still be listed"


def test_a_damaged_pack_is_not_used(pack: Path, tmp_path: Path, nothing_loaded: None) -> None:
    image = bytearray(pack.read_bytes())
    image[-20] ^= 0x10
    (tmp_path / "bad.pack").write_bytes(image)
    with pytest.raises(InvalidArguments, match="damaged"):
        dnn.load_pack(tmp_path / "bad.pack")
    assert packs.loaded() == ()


@pytest.mark.parametrize("path", [None, 3, b"x\0y", "x\0y"])
def test_a_path_that_is_none(path: object) -> None:
    with pytest.raises(InvalidArguments):
        dnn.load_pack(path)  # type: ignore[arg-type]


def test_an_empty_pack(tmp_path: Path) -> None:
    with pytest.raises(InvalidArguments, match="at least one problem"):
        packing.write_pack(tmp_path / "x.pack", [], {})


def test_a_plan_is_not_for_other_requests(pack: Path, nothing_loaded: None) -> None:
    dnn.load_pack(pack)
    pd = descs("avx2")[0]
    for attr in (dnn.Attr(), dnn.Attr([dnn.Eltwise("relu", 0.5)])):
        assert dnn.primitive_desc(pd.desc, attr, pd.engine).plan.phases[0].records.flags.owndata
