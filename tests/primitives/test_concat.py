"""Concatenation, padding, and moves of arrays: every format and type, blocks that do not fit, bad input."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.primitives.guarded import in_child
from tests.primitives.test_guard_pages import run_guarded

TAGS = ("abcd", "acdb", "aBcd8b", "aBcd16b", "cdab")


def numbers(*dims: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(-100, 100, dims).astype(np.float32)


def run(desc: Any, arrays: dict[str, Any], says: str, isa: str = "avx2") -> Any:
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa, threads=2))
    assert pd.implementation.removeprefix("reorder+") == f"{says}:{isa}"
    pd.plan.check()
    memories = {name: dnn.Memory(tensor) for name, tensor in pd.plan.tensors.items() if name not in arrays}
    memories |= {name: dnn.Memory.from_numpy(array, pd.plan.tensors[name]) for name, array in arrays.items()}
    dnn.Primitive(pd).execute(**memories)
    assert memories["dst"].padding_is_zero()
    return memories["dst"].numpy()


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("dst_tag", TAGS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat(dst_tag: str, axis: int) -> None:
    for sizes in ((8, 16, 19), (3, 5), (0, 7), (16,)):
        arrays = {}
        for k, size in enumerate(sizes):
            dims = [2, 19, 3, 5]
            dims[axis] = size
            arrays[f"src{k}"] = numbers(*dims, seed=k)
        wanted = np.concatenate(list(arrays.values()), axis)
        srcs = [dnn.MemoryDesc(x.shape, dnn.f32, TAGS[k]) for k, x in enumerate(arrays.values())]
        desc = dnn.Concat(srcs, dnn.MemoryDesc(wanted.shape, dnn.f32, dst_tag), axis)  # type: ignore[arg-type]
        assert np.array_equal(run(desc, arrays, "concat"), wanted)


@pytest.mark.isa("avx2")
def test_any_and_large() -> None:
    """dst in the sources' format; rows of whole lines go past the caches where dst is large."""
    src = dnn.MemoryDesc((1, 64, 224, 224), dnn.f32, "acdb")
    desc = dnn.Concat((src, src), dnn.MemoryDesc((1, 128, 224, 224), dnn.f32, "any"), 1)
    plan = dnn.primitive_desc(desc, engine=dnn.Engine(machine="zen3", isa="avx2", threads=1)).plan
    assert plan.tensors["dst"].tag == "acdb"
    assert all(spec.streaming for spec in plan.specs)  # type: ignore[attr-defined]
    arrays = {"src0": numbers(*src.dims), "src1": numbers(*src.dims, seed=1)}
    assert np.array_equal(run(desc, arrays, "concat"), np.concatenate(list(arrays.values()), 1))


@pytest.mark.isa("avx2")
def test_pieces_of_a_padding_that_read_src_are_one_phase() -> None:
    row, wide = (dnn.MemoryDesc((1, n), dnn.f32, "ab") for n in (576, 640))
    plan = dnn.primitive_desc(dnn.Pad(row, wide, (0, 0), "reflect"), engine=dnn.Engine(isa="avx2", threads=2)).plan
    plan.check()
    assert [len(phase.records) for phase in plan.phases] == [1 + 64]


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
@pytest.mark.parametrize("tag", TAGS)
def test_pad(isa: str, tag: str, mode: Any) -> None:
    for widths in (((0, 0), (1, 2), (3, 0), (2, 4)), ((1, 0), (0, 0), (0, 0), (0, 3)), ((0, 0),) * 4):
        x = numbers(2, 3, 5, 7)
        dims = tuple(n + sum(width) for n, width in zip(x.shape, widths, strict=True))
        value = 2.5 if mode == "constant" else 0.0
        descs = dnn.MemoryDesc(x.shape, dnn.f32, tag), dnn.MemoryDesc(dims, dnn.f32, tag)
        desc = dnn.Pad(*descs, tuple(before for before, _ in widths), mode, value)
        more = {"constant_values": value} if mode == "constant" else {}
        assert np.array_equal(run(desc, {"src": x}, "pad", isa), np.pad(x, widths, mode, **more))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("dtype", [dnn.s32, dnn.f16, dnn.s8, dnn.u8], ids=str)
def test_pad_of_types(dtype: dnn.DataType) -> None:
    x = np.abs(numbers(3, 5)).astype(dtype.numpy)
    descs = dnn.MemoryDesc((3, 5), dtype, "ab"), dnn.MemoryDesc((5, 8), dtype, "ab")
    wanted = np.pad(x, ((1, 1), (2, 1)), constant_values=7)
    assert np.array_equal(run(dnn.Pad(*descs, (1, 2), "constant", 7), {"src": x}, "pad"), wanted)


def test_operations_on_arrays() -> None:
    x, y = numbers(3, 4, 6), numbers(3, 5, 6, seed=1)
    assert np.array_equal(dnn.ops.concat([x, y], 1), np.concatenate([x, y], 1))
    first, second = dnn.ops.split(dnn.ops.concat([x, y], 1), [4, 5], 1)
    assert np.array_equal(first, x)
    assert np.array_equal(second, y)
    assert [part.shape for part in dnn.ops.split(x, 2, -1)] == [(3, 4, 3)] * 2
    assert np.array_equal(dnn.ops.slice(x, (0, 1, 2), (3, 4, 6), (2, 1, 3)), x[0:3:2, 1:4, 2:6:3])
    assert np.array_equal(dnn.ops.slice(x, (-2, 0, 0), (3, -1, 5)), x[-2:, :-1, :5])
    assert np.array_equal(dnn.ops.slice(x, (0, 3, 1), (3, -9, 5), (2, -1, 2)), x[::2, ::-1, 1:5:2])
    assert np.array_equal(dnn.ops.slice(x, (2, 3, 5), (-9, 0, -9), (-1, -2, -3)), x[::-1, 3:0:-2, ::-3])
    assert np.array_equal(
        dnn.ops.slice(x.astype(np.int8), (0, 0, -1), (3, 4, -9), (1, 1, -1)), x.astype(np.int8)[:, :, ::-1]
    )
    assert np.array_equal(
        dnn.ops.pad(x, ((0, 1), (2, 0), (1, 1)), "reflect"), np.pad(x, ((0, 1), (2, 0), (1, 1)), "reflect")
    )
    assert np.array_equal(dnn.ops.pad(x, 1, value=-1), np.pad(x, 1, constant_values=-1))
    assert np.array_equal(dnn.ops.expand(x[:, :1], (2, 3, 5, 6)), np.broadcast_to(x[:, :1], (2, 3, 5, 6)))
    bytes_ = np.arange(12, dtype=np.uint8).reshape(3, 4)
    assert np.array_equal(dnn.ops.concat([bytes_, bytes_]), np.concatenate([bytes_, bytes_]))
    assert np.array_equal(dnn.ops.split(bytes_, 2, 1)[1], bytes_[:, 2:])
    assert dnn.ops.slice(x, (1, 1, 1), (1, 4, 5)).shape == (0, 3, 4)
    out = np.empty((3, 9, 6), np.float32)
    assert dnn.ops.concat([x, y], 1, out=out) is out


@pytest.mark.isa("avx2")
def test_guard_pages() -> None:
    def run_all() -> None:
        x, y = numbers(2, 3, 5), numbers(2, 6, 5, seed=1)
        for tag in ("abc", "acb"):
            descs = [dnn.MemoryDesc(dims, dnn.f32, tag) for dims in ((2, 3, 5), (2, 6, 5), (2, 9, 5), (4, 6, 9))]
            concat, pad = (
                dnn.Concat(tuple(descs[:2]), descs[2], 1),
                dnn.Pad(descs[0], descs[3], (1, 1, 2), "reflect" if 0 else "edge"),
            )
            for at_end in (True, False):
                wanted = np.concatenate([x, y], 1).astype(np.float64)
                run_guarded(dnn.Primitive(dnn.primitive_desc(concat)), {"src0": x, "src1": y}, wanted, at_end)
                wanted = np.pad(x, ((1, 1), (1, 2), (2, 2)), "edge").astype(np.float64)
                run_guarded(dnn.Primitive(dnn.primitive_desc(pad)), {"src": x}, wanted, at_end)

    assert not in_child(run_all)


def test_bad_input() -> None:
    a, b = dnn.MemoryDesc((2, 3), dnn.f32, "ab"), dnn.MemoryDesc((2, 4), dnn.f32, "ab")
    whole = dnn.MemoryDesc((2, 7), dnn.f32, "ab")
    for arguments, says in (
        (((), whole, 1), "srcs must be one MemoryDesc or more"),
        (((a, b), None, 1), "dst must be a MemoryDesc"),
        (((a, b), whole, 2), "axis is 2, the tensors have 2 dims: use -2 to 1"),
        (((a, b), whole, 0), "src0 has dims"),
        (((a, a), whole, 1), "axis 1 of dst is 7, the sources make it 6"),
        (((a, dnn.MemoryDesc((2, 4), dnn.f32, "any")), whole, 1), "src1 has the format any"),
    ):
        with pytest.raises(dnn.InvalidArguments, match=says):
            dnn.Concat(*arguments)  # type: ignore[arg-type]
    bytes_ = dnn.MemoryDesc((2, 4), dnn.u8, "ab")
    for arguments, says in (
        ((a, None, (0, 0)), "dst must be a MemoryDesc with a format"),
        ((a, bytes_, (0, 0)), "it must have the type"),
        ((a, b, (0,)), "before must be 2 integers"),
        ((a, b, (0, -1)), "before must be integers of at least 0"),
        ((a, b, (0, 2)), "dim 1 of dst is 4, with src and before it is 5"),
        ((a, dnn.MemoryDesc((2, 9), dnn.f32, "ab"), (0, 3), "reflect"), "pads it by at most 2"),
        ((a, b, (0, 0), "wrap"), "must be one of constant, edge, reflect"),
        ((bytes_, dnn.MemoryDesc((3, 4), dnn.u8, "ab"), (0, 0), "constant", 300), "must be a number of type u8"),
    ):
        with pytest.raises(dnn.InvalidArguments, match=says):
            dnn.Pad(*arguments)  # type: ignore[arg-type]
    x = np.zeros((3, 4), np.float32)
    for call, says in (
        (lambda: dnn.ops.concat([]), "arrays must be"),
        (lambda: dnn.ops.concat([x, x[:, :3]]), r"arrays\[1\] has dims"),
        (lambda: dnn.ops.split(x, 5), "axis 0 of x is 3"),
        (lambda: dnn.ops.split(x, [1, 1]), "axis 0 of x is 3"),
        (lambda: dnn.ops.slice(x, (0,), (1, 1)), "one integer for each of 2 dims"),
        (lambda: dnn.ops.slice(x, (0, 0), (1, 1), (1, 0)), "steps must not be 0"),
        (lambda: dnn.ops.expand(x, (3, 5)), "dims of x"),
        (lambda: dnn.ops.pad(x, ((1, 1),) * 3), "widths must be"),
    ):
        with pytest.raises(dnn.InvalidArguments, match=says):
            call()
