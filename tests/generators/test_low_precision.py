"""What is particular to tiles of other types than f32; their results and accesses are tested as the corpus's."""

from dataclasses import replace

import numpy as np
import pytest

from asmdnn.corpus.conv import blocked
from asmdnn.corpus.low_precision import LEVELS_OF_CONVOLUTIONS, LEVELS_OF_TYPES
from asmdnn.corpus.matmul import tile
from asmdnn.generators.dot.conv_shape import SRC, TapGroup
from asmdnn.generators.dot.matmul_shape import Items
from asmdnn.generators.functions.postops import ReluOp
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.dot import BF16, F32, U8S8, Types
from asmdnn.types import f32, s32
from tests.generators.cases import case_of
from tests.generators.codes import code_of
from tests.support.arena import encode
from tests.support.emulation import emulate

LEVELS = pytest.mark.parametrize(("types", "isa"), LEVELS_OF_TYPES, ids=str)


def test_the_name_of_an_f32_tile_is_as_before_there_were_types() -> None:
    """Kernels that are kept on disk, and golden hashes, go by it."""
    assert tile("avx2", 2, 8).name == "matmul_f32_2x8x3_d530df96__avx2"


@LEVELS
def test_types_are_part_of_text_and_name(types: Types, isa: str) -> None:
    spec = tile(isa, 2, 8, types=types)
    assert spec.name.startswith(f"matmul_{types}_2x8x3_") and spec.name.endswith(f"__{isa}")
    assert len({spec.name, tile(isa, 2, 8).name, tile("avx512_core_amx", 2, 8, types=types).name}) == 3


def test_dst_has_the_type_of_sums_unless_something_is_computed_from_them() -> None:
    spec = tile("avx2_vnni", 2, 8, types=U8S8).tile
    assert spec.dst_type == s32
    computed = (replace(spec, scaled=True), replace(spec, post_ops=(ReluOp(0.0),)))
    assert [x.dst_type for x in computed] == [f32, f32]
    assert replace(spec, types=F32).dst_type == replace(spec, types=BF16).dst_type == f32


@LEVELS
def test_a_cut_group_is_read_as_far_as_the_depth(types: Types, isa: str) -> None:
    """And the loop takes whole groups only, so that there is no test of k in it."""
    spec = tile(isa, 2, 8, 16 * types.group + 1, types=types)
    src = [r for r in spec.footprint().reads if r.argument == 0]
    assert [r.end_bytes - r.begin_bytes for r in src] == [64 + types.src.size_bytes] * 2
    assert spec.tile.steps == 17 and spec.tile.last_group_bytes == types.src.size_bytes


@pytest.mark.parametrize(("types", "isa"), LEVELS_OF_CONVOLUTIONS, ids=str)
def test_a_cut_group_of_channels(types: Types, isa: str) -> None:
    """Of every pixel as many bytes as there are channels, of the weights whole rows."""
    channels = 3 * types.group - 1
    spec = replace(blocked("avx2", 2), isa=isa, types=types, groups=(TapGroup((0, 1), channels),))
    taps = spec.footprint().taps
    assert taps is not None
    src = [r.end_bytes - r.begin_bytes for r in taps.groups[0] if r.argument == SRC]
    assert src == [channels * types.src.size_bytes] * 2
    assert len(taps.groups[0]) - len(src) == 3
    assert spec.name.startswith(f"conv_{types}_2x8_")


@pytest.mark.parametrize("rows", [1, 3])
def test_what_is_after_the_depth_is_no_number_of_src(rows: int) -> None:
    """Infinity in the last element stays infinity: the rest of its group is zero, not infinity times a zero weight."""
    spec = tile("avx512_core_bf16", rows, 16, 3, types=BF16)
    buffers = dict(case_of(spec).buffers)
    src, weights, dst = buffers["src"], buffers["weights"], buffers["dst"]
    assert src is not None and weights is not None and dst is not None
    ones = np.ones(len(weights.before) // 2)
    ones[spec.tile.weights_row_bytes // 2 + 1 :: 2] = 0  # the second elements of the second group
    filled = {
        "src": replace(src, before=encode(np.full(len(src.before) // 2, np.inf), BF16.src)),
        "weights": replace(weights, before=encode(ones, BF16.weights)),
    }
    after = emulate(code_of(spec).data, spec.frame, {**buffers, **filled}).after
    assert np.isposinf(after["dst"].view(np.float32)[dst.written[::4]]).all()


def test_several_tiles_a_call_step_over_the_groups_that_the_loop_has_passed() -> None:
    spec = tile("avx512_core_bf16", 1, 16, 33, types=BF16, items=Items(2, 128, 2048, 0, 64))
    listing = code_of(spec).listing
    assert listing is not None
    steps = [line.text for line in listing if line.text.startswith("add")]
    assert steps[:2] == ["add rax, 32", "add rcx, 672"]


def test_a_level_without_the_instruction_has_no_kernel() -> None:
    with pytest.raises(NotImplementedError, match="isa avx512_core has no dot product of bf16bf16f32"):
        tile("avx512_core", 1, 16, types=BF16).generate(Assembler("none"))
