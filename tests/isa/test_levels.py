from itertools import pairwise

import pytest

from asmdnn.errors import InvalidArguments
from asmdnn.isa.levels import AVX2, AVX512_CORE, AVX512_CORE_AMX, LEVELS, isa_of


def test_names_and_order() -> None:
    assert [str(level) for level in LEVELS] == [
        "avx2", "avx2_vnni",
        "avx512_core", "avx512_core_vnni", "avx512_core_bf16", "avx512_core_fp16", "avx512_core_amx",
    ]  # fmt: skip
    assert [level.rank for level in LEVELS] == list(range(len(LEVELS)))
    assert all(isa_of(level.name) is level for level in LEVELS)


def test_features_grow_along_both_lines() -> None:
    assert all(level.features > AVX2.features for level in LEVELS[1:])
    assert all(a.features < b.features for a, b in pairwise(LEVELS[2:]))
    assert "avx_vnni" not in AVX512_CORE_AMX.features  # many CPUs with AVX-512 lack it
    assert (AVX2.vector_bytes, AVX512_CORE.vector_bytes) == (32, 64)


def test_an_unknown_name_lists_the_names() -> None:
    with pytest.raises(InvalidArguments, match=r"isa 'sse41' is not one of avx2, avx2_vnni, .*avx512_core_amx"):
        isa_of("sse41")
