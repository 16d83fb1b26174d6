"""Explanations that several tests look at, each made once."""

from functools import lru_cache

import asmdnn as dnn
from asmdnn.bench.descriptors import primitive_desc_of
from asmdnn.cli.explain import one_case
from asmdnn.explain.build import explain
from asmdnn.explain.model import Explanation

LAYER = "mb1ic16ih12oc20oh12kh3ph1"
ISAS = ("avx2", "avx512_core")


@lru_cache
def descriptor(words: str, isa: str, threads: int = 2) -> dnn.PrimitiveDesc:
    case = one_case("test", words.split())
    return primitive_desc_of(case, dnn.Engine(isa=isa, threads=threads, l2_bytes=512 << 10, machine="zen3"))


@lru_cache
def explained(words: str = LAYER, isa: str = "avx2", threads: int = 2) -> Explanation:
    return explain(descriptor(words, isa, threads), words)
