"""Matrix products of narrow types whose weights are plain: read where they lie, packed by blocks, or packed before."""

from dataclasses import replace

import pytest

import asmdnn as dnn
from asmdnn.generators.dot.matmul_shape import ARGUMENTS
from tests.primitives.typed_case import TypedCase, at_levels, check
from tests.support.tuning import by_whole_rows

C = TypedCase

STREAMED = [
    (C(1, 300, 150, "bf16:bf16:bf16", "ab"), "rows"),
    (C(4, 515, 203, "bf16:bf16:f32", "ab", bias="f32"), "rows"),
    (C(3, 600, 177, "f16:f16:f16", "ab"), "rows"),
    (C(1, 259, 131, "u8:s8:s32", "ab", zero_points=(7, None)), "rows"),
    (C(1, 259, 131, "s8:s8:u8", "ab", scaled=True), "rows"),
    (C(1, 70, 301, "bf16:bf16:bf16", "ba"), "dots"),
    (C(1, 33, 131, "f16:f16:f32", "ba", bias="f32"), "dots"),
    (C(1, 70, 301, "u8:s8:s32", "ba", zero_points=(7, None)), "dots"),
    (C(1, 70, 301, "s8:s8:f32", "ba", scaled=True), "dots"),
    (C(70, 1, 301, "f16:f16:f32", "ab"), ""),
]


@at_levels()
@pytest.mark.parametrize(("case", "way"), STREAMED, ids=str)
def test_few_rows_read_plain_weights_where_they_lie(level: str, case: TypedCase, way: str) -> None:
    """Nothing packs them: whole rows are interleaved in registers, or lie along k as it is."""
    on = by_whole_rows(dnn.Engine(isa=level, machine=case.machine))
    implementation = check(replace(case, tuning=on.tuning), level).implementation
    assert way in implementation and "weights" not in implementation


@at_levels(("avx512_core_vnni", "avx512_core_bf16"))
def test_few_rows_of_bytes(level: str) -> None:
    """Registers of AVX2 do not hold their sums: a thread packs blocks there."""
    for m, types in ((2, "s8:s8:s32"), (3, "u8:s8:s32"), (4, "u8:s8:bf16")):
        assert check(C(m, 259, 131, types, "ab"), level).implementation.startswith("rows")
        assert C(m, 259, 131, types, "ab").planned("avx2").implementation.startswith("pack_blocks")
    assert check(C(4, 600, 131, "s8:s8:s32", "ab"), level).implementation.startswith("pack_blocks")


@at_levels(("avx2", "avx512_core_bf16"))
def test_split_sums_of_plain_weights(level: str) -> None:
    """Weights of few columns and many rows, which no tile reads where they lie, are packed before."""
    for types in ("bf16:bf16:bf16", "bf16:bf16:f32", "u8:s8:s32", "f16:f16:f32"):
        for m, wtag in ((8, "ab"), (3, "ba"), (8, "any")):
            check(C(m, 256, 2664, types, wtag), level)
    assert C(8, 256, 2664, "bf16:bf16:f32", "ab").planned("avx512_core_bf16").implementation.startswith("pack_weights")


@at_levels(("avx512_core_vnni", "avx512_core_bf16"))
def test_blocks_of_plain_weights_and_outer_products(level: str) -> None:
    """A thread packs what it multiplies with; products of few steps of k write dst along its rows.  What is widened is
    neither."""
    for types in ("u8:s8:s32", "s8:s8:u8", "bf16:bf16:f32", "bf16:bf16:bf16"):
        is_native = "bf16" not in types or level == "avx512_core_bf16"
        for n, k in ((1100, 401), (520, 1030)):
            assert ("pack_blocks" in check(C(16, n, k, types, "ab"), level).implementation) == is_native
        if not types.endswith(("u8", "bf16")):
            check(C(5, 600, 5, types), level)


@at_levels(("avx512_core_bf16",))
@pytest.mark.parametrize(("types", "group"), [("bf16:bf16:bf16", 2), ("u8:s8:s32", 4)])
def test_few_steps_of_k_write_dst_along_its_rows(level: str, types: str, group: int) -> None:
    """Of up to 8 steps weights are packed before; a block of some more stays in L1, and all its panels are multiplied
    with a tile of rows before the next one."""
    assert check(C(30, 2048, 8 * group, types, "ab"), level).implementation.startswith("pack_weights+tiles")
    found = check(C(30, 2048, 8 * group + 1, types, "ab"), level)
    assert found.implementation.startswith("pack_blocks+tiles")
    _, *tiles = found.plan.phases[0].records[:, 1 + ARGUMENTS.index("dst")].tolist()
    row_bytes = 2048 * (4 if types.endswith("s32") else 2)
    assert tiles == sorted(tiles) and 0 < tiles[1] < row_bytes < tiles[-1]


@pytest.mark.parametrize("level", ["avx512_core_vnni", "avx512_core_bf16"])
@pytest.mark.parametrize("types", ["u8:s8:s32", "s8:s8:s32", "bf16:bf16:f32"])
def test_sums_that_are_the_result_go_by_outer_products(types: str, level: str) -> None:
    """On whatever machine; integers that a chain adds to sums are none where there is no chain."""
    is_native = "bf16" not in types or level == "avx512_core_bf16"
    assert C(5, 600, 5, types).planned(level).implementation.startswith("outer") == is_native
