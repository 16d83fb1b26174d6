"""deterministic="batch" of recurrent layers of every type: a sequence's bits are those that it has alone."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import Unimplemented
from tests.primitives import recurrent_case, test_recurrent_bytes
from tests.primitives.recurrent_case import CELLS, CONCAT, Arrays, describe, memories_of, typed
from tests.primitives.test_any_batch import BATCHES, asking, engine
from tests.primitives.test_recurrent_bytes import FLOATS, described
from tests.primitives.test_recurrent_dynamic import described as dynamic

AXES = {
    **dict.fromkeys(("src_layer", "dst_layer"), 1),
    **dict.fromkeys(("src_iter", "dst_iter", "src_iter_c", "dst_iter_c"), 2),
}
LEVELS = [
    pytest.param(isa, marks=pytest.mark.isa(isa))
    for isa in ("avx2", "avx512_core", "avx512_core_vnni", "avx512_core_bf16")
]
TYPES = {  # of rows, weights and the rest
    "bf16": (dnn.bf16, dnn.bf16, dnn.f32),
    "bf16 throughout": (dnn.bf16, dnn.bf16, dnn.bf16),
    "f16": (dnn.f16, dnn.f16, dnn.f32),
    "f32 by bf16": (dnn.f32, dnn.bf16, dnn.f32),
}
SHAPES: tuple[tuple[tuple[int, int, int], dict[str, Any]], ...] = (  # steps, input and hidden channels
    ((3, 20, 48), {}),
    ((2, 64, 130), {"direction": CONCAT}),
    ((2, 300, 40), {"layers": 2, "states": False}),
)
Layer = tuple[Callable[[int], Any], Callable[[Any], Arrays]]
Engines = Callable[[str, int], dnn.Engine]


def layers(cell: type, name: str) -> list[Layer]:
    """Layers of a type for any number of sequences, and what makes data for them."""
    if name != "bytes":
        makes = [partial(of_floats, cell, name, *shape) for shape in SHAPES]
        return [(make, recurrent_case.data_of) for make in makes]
    both = [partial(of_bytes, cell, floats, *shape) for shape in SHAPES for floats in ((), FLOATS)]
    return [(make, test_recurrent_bytes.data_of) for make in both]


def of_floats(cell: type, name: str, sizes: tuple[int, int, int], words: dict[str, Any], n: int) -> Any:
    return typed(describe(cell, (sizes[0], n, *sizes[1:]), **words), *TYPES[name])


def of_bytes(cell: type, floats: Any, sizes: tuple[int, int, int], words: dict[str, Any], n: int) -> Any:
    return described(cell, (sizes[0], n, *sizes[1:]), floats=floats, **words)


def results(desc: Any, data: Arrays, on: dnn.Engine) -> dict[str, np.ndarray]:
    primitive = dnn.Primitive(dnn.primitive_desc(desc, engine=on))
    memories = memories_of(primitive.pd.plan.tensors, data)
    primitive.execute(**memories)
    return {name: memories[name].numpy() for name in primitive.pd.plan.outputs}


def first(arrays: dict[str, Any], n: int) -> dict[str, Any]:
    """Those of the first n sequences."""
    return {name: x.take(range(n), AXES[name]) if name in AXES else x for name, x in arrays.items()}


def differing(
    cell: type, name: str, isa: str, batches: Sequence[int], threads: Sequence[int], engines: Engines = asking
) -> list[tuple[int, int, int, str]]:
    """The layers, numbers of sequences and threads, and results of other bits than among the most sequences."""
    found = []
    for number, (make, data_of) in enumerate(layers(cell, name)):
        most = make(max(batches))
        data = data_of(most)
        whole = results(most, data, engines(isa, 1))
        for n in batches:
            wanted = first(whole, n)
            for count in threads:
                got = results(make(n), first(data, n), engines(isa, count))
                found += [(number, n, count, key) for key, x in got.items() if x.tobytes() != wanted[key].tobytes()]
    return found


def cells_of(name: str) -> tuple[Any, ...]:
    return test_recurrent_bytes.KINDS if name == "bytes" else CELLS


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("name", [*TYPES, "bytes"])
def test_bits_do_not_depend_on_neighbours(name: str, isa: str) -> None:
    assert [x for cell in cells_of(name) for x in differing(cell, name, isa, (17, 5, 2, 1), (1, 3))] == []


@pytest.mark.slow
@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("name", [*TYPES, "bytes"])
def test_bits_do_not_depend_on_any_number_of_neighbours(name: str, isa: str) -> None:
    assert [x for cell in cells_of(name) for x in differing(cell, name, isa, BATCHES, (1, 2, 3))] == []


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("name", ["f16", "f32 by bf16"])
def test_the_comparison_can_fail(name: str) -> None:
    assert differing(dnn.GRUForward, name, "avx2", (17, 5, 2, 1), (1,), engine)


def test_rows_that_are_rounded_by_the_range_of_all() -> None:
    desc, _ = dynamic((2, 3, 5, 8))
    with pytest.raises(Unimplemented, match=r"weights_layer_scales is given, .* by rnn_data_qparams"):
        dnn.primitive_desc(desc, engine=asking("avx2"))
