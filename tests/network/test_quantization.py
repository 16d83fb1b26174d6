"""Quantised operators by their definitions, against sums in 64-bit integers."""

import numpy as np
import pytest

from asmdnn.network.building import OPSET
from asmdnn.network.graph import Node
from asmdnn.network.operators.table import operator_of

PRODUCT = Node("MatMulInteger", ("a", "b", "za", "zb"), ("y",), {}, "", "", OPSET)


@pytest.mark.parametrize("left", [np.uint8, np.int8])
@pytest.mark.parametrize("right", [np.uint8, np.int8])
@pytest.mark.parametrize("extreme", [False, True])
def test_integer_products_are_exact(left: type, right: type, extreme: bool) -> None:
    """Sums beyond 2^24, where f32 would round, and beyond 2^31, where they wrap as ONNX's int32 do."""
    random = np.random.default_rng(3)
    for m, k, n in ((1, 1, 1), (3, 300, 5), (2, 40_000, 3)):
        shapes = ((m, k), left), ((k, n), right), ((m,), left), ((n,), right)
        a, b, za, zb = (
            random.integers(low, high, dims, dtype, endpoint=True)
            if not extreme
            else np.full(dims, low if len(dims) == 1 else high, dtype)
            for dims, dtype in shapes
            for low, high in [(np.iinfo(dtype).min, np.iinfo(dtype).max)]
        )
        wide = [x.astype(np.int64) for x in (a, b, za, zb)]
        wanted = ((wide[0] - wide[2][:, None]) @ (wide[1] - wide[3])).astype(np.int32)
        operator = operator_of(PRODUCT)
        assert operator is not None
        found = operator.evaluate(PRODUCT, a, b, za, zb)
        assert found.dtype == np.int32
        assert np.array_equal(found, wanted)
