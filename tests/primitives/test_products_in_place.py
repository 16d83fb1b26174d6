"""Products whose result may be written over the operand of a post-op, as the update of a parameter is."""

import numpy as np
import pytest

import asmdnn as dnn

SHAPES = [
    (64, 64, 256), (256, 64, 128), (5, 7, 3), (37, 3, 61), (1, 50, 33), (33, 50, 1), (130, 1, 77), (3, 17, 1000),
    (8, 4096, 8),
]  # fmt: skip


def planned(isa: str, dims: tuple[int, int, int], operand: dnn.MemoryDesc, threads: int = 1) -> dnn.PrimitiveDesc:
    m, k, n = dims
    src, weights, dst = (dnn.MemoryDesc(shape, dnn.f32, "ab") for shape in ((m, k), (k, n), (m, n)))
    attr = dnn.Attr([dnn.Binary("add", operand), dnn.Eltwise("relu")])
    engine = dnn.Engine(isa=isa, threads=threads, l2_bytes=512 << 10, machine="zen3")
    return dnn.primitive_desc(dnn.MatMul(src, weights, dst), attr=attr, engine=engine)


@pytest.mark.parametrize("dims", SHAPES, ids=str)
def test_dst_over_the_operand(isa: str, dims: tuple[int, int, int]) -> None:
    """Equal bits in place and apart, for every number of threads."""
    m, k, n = dims
    random, found = np.random.default_rng(0), []
    arrays = [random.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n), (m, n))]
    for threads in (1, 2, 3):
        pd = planned(isa, dims, dnn.MemoryDesc((m, n), dnn.f32, "ab"), threads)
        pd.plan.check()
        assert pd.plan.in_place == (("binary_0", "dst"),), pd.implementation
        for in_place in (False, True):
            src, weights, old = (dnn.Memory.from_array(array.copy()) for array in arrays)
            dst = old if in_place else dnn.Memory(pd.dst_desc)
            dnn.Primitive(pd).execute(src=src, weights=weights, dst=dst, binary_0=old)
            found.append(dst.numpy().copy())
    assert all(np.array_equal(found[0], one) for one in found)
    exact = np.maximum(arrays[0].astype(np.float64) @ arrays[1] + arrays[2], 0)
    np.testing.assert_allclose(found[0], exact, rtol=1e-4, atol=1e-6 * k)


def test_partial_sums_in_dst(isa: str) -> None:
    """Ranges of k leave sums in dst before the operand is read."""
    pd = planned(isa, (300, 3000, 48), dnn.MemoryDesc((300, 48), dnn.f32, "ab"))
    assert len(pd.plan.phases) > 1
    assert not pd.plan.in_place


def test_operands_that_lie_otherwise(isa: str) -> None:
    """Their places are not those of dst."""
    for operand in (dnn.MemoryDesc((1, 64), dnn.f32, "ab"), dnn.MemoryDesc((64, 64), dnn.f32, "ba")):
        assert not planned(isa, (64, 64, 64), operand).plan.in_place
