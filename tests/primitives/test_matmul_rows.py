"""One object for many row counts: results, and that no row count makes a kernel."""

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.primitives.products.matmul_rows import SAMPLED_ROWS
from tests.primitives.tensors import holding, read

OTHER_ROWS = [m for m in (0, 81, 100, 113, 200, 255, 333, 1000, 3001) if m not in SAMPLED_ROWS]


def values(*dims: int) -> np.ndarray:
    return np.random.default_rng(sum(dims)).integers(-3, 4, dims).astype(np.float32)


def tensor(dims: tuple[int, ...], tag: str = "ab") -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dnn.f32, tag)


@pytest.mark.parametrize(("n", "k", "tag"), [(40, 24, "any"), (33, 100, "ab"), (20, 40, "ba")])
def test_any_number_of_rows(isa: str, n: int, k: int, tag: str) -> None:
    product = dnn.MatMulRows(
        tensor((k, n), tag), tensor((1, n)), dnn.Attr([dnn.Eltwise("relu")]), dnn.Engine(isa=isa, threads=2)
    )
    kernels = {spec for m in SAMPLED_ROWS for spec in product.primitive_desc(m).plan.specs}
    weights, bias = values(k, n), values(1, n)
    packed = dnn.reorder(dnn.Memory.from_numpy(weights, tensor((k, n))), product.weights_desc)
    for m in (1, 2, 7, 40, *OTHER_ROWS):
        assert set(product.primitive_desc(m).plan.specs) <= kernels, f"{m} rows need kernels of their own"
        src, dst = values(m, k), holding(tensor((m, n)), None)
        memories = {"src": dnn.Memory.from_numpy(src, tensor((m, k))), "weights": packed, "dst": dst}
        product.execute(None, **memories, bias=dnn.Memory.from_numpy(bias, tensor((1, n))))
        assert np.array_equal(read(dst), np.maximum(src @ weights + bias, 0))


def test_scales_of_each_row(isa: str) -> None:
    """A mask with the rows: as many scales as src has rows, in the same kernels."""
    attr = dnn.Attr(scales={"src": 1, "weights": 2, "dst": 0})
    product = dnn.MatMulRows(tensor((24, 40)), attr=attr, engine=dnn.Engine(isa=isa, threads=1))
    kernels = {spec for m in SAMPLED_ROWS for spec in product.primitive_desc(m).plan.specs}
    weights, columns = values(24, 40), values(40) + 4
    for m in (1, 3, 113):
        assert set(product.primitive_desc(m).plan.specs) <= kernels
        src, rows, dst = values(m, 24), values(m) + 4, holding(tensor((m, 40)), None)
        arrays = {"src": src, "weights": weights, "src_scales": rows, "weights_scales": columns}
        scale = dnn.Memory.from_array(np.float32([8]))
        product.execute(None, **{n: dnn.Memory.from_array(a) for n, a in arrays.items()}, dst_scales=scale, dst=dst)
        assert np.array_equal(read(dst), rows[:, None] * columns * (src @ weights) / 8)


def test_what_is_refused(isa: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match="weights must be a MemoryDesc of 2 dims"):
        dnn.MatMulRows(tensor((2, 3, 4), "abc"))
    with pytest.raises(dnn.InvalidArguments, match=r"bias must be a MemoryDesc of dims \(1, 4\)"):
        dnn.MatMulRows(tensor((3, 4)), tensor((2, 4)))
    product = dnn.MatMulRows(tensor((3, 4)), engine=dnn.Engine(isa=isa))
    memories = {"weights": dnn.Memory(tensor((3, 4))), "dst": dnn.Memory(tensor((2, 4)))}
    with pytest.raises(dnn.InvalidArguments, match="src must be a Memory of 2 dims"):
        product.execute(None, **memories)
    with pytest.raises(dnn.InvalidArguments, match=r"src is .*, this primitive takes"):
        product.execute(None, src=dnn.Memory(tensor((2, 4))), **memories)
    with pytest.raises(dnn.InvalidArguments, match=r"dst is .*, this primitive takes"):
        product.execute(None, src=dnn.Memory(tensor((5, 3))), **memories)
