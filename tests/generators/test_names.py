"""A spec's name is its identity for people: in listings, profiles, file names of the kernel cache."""

import re

import pytest

import asmdnn as dnn
from asmdnn.bench import batch_files
from asmdnn.bench.problems import ConvProblem, parse_problem
from asmdnn.corpus.conv import CONV_LEVELS, blocked
from asmdnn.corpus.families import corpus, families, stated_families
from asmdnn.generators.functions.postops import PostOp, ReluOp, SumOp
from tests.primitives.conv_case import ConvCase

NAME = re.compile(r"[a-z0-9_.]+")
NETWORKS = ("resnet_50", "resnet_50_v1_5", "vgg_16", "mobilenet_v1")
LONGEST_NAME = 200  # a file system allows 255, and the cache adds to it


def problems_of(network: str) -> list[ConvProblem]:
    """The problems of a set that are no options, and have no groups."""
    words = [word for line in batch_files.lines(batch_files.problem_sets()[network]) for word in line.words]
    return [p for p in (parse_problem(word) for word in words if not word.startswith("-")) if p.groups == 1]


def check_names(specs: set[object]) -> None:
    """Well-formed, and each one's own, but for specs that differ in numbers which the same code reads."""
    owners: dict[str, object] = {}
    for spec in {getattr(spec, "code_spec", spec) for spec in specs}:
        name = spec.name  # type: ignore[attr-defined]
        assert NAME.fullmatch(name) and len(name) <= LONGEST_NAME, name
        assert owners.setdefault(name, spec) == spec, f"two specs are called {name}"


def test_names_of_the_corpus() -> None:
    assert len(set(corpus())) == len(corpus())
    check_names(set(corpus()))


def test_no_file_of_the_corpus_hides_a_family_of_another() -> None:
    assert len(families()) == sum(map(len, stated_families()))


@pytest.mark.parametrize("chain", [("relu",), ("sum", "relu")], ids="+".join)
def test_names_of_networks(chain: tuple[str, ...]) -> None:
    """All kernels of all layers, of both levels, together."""
    specs: set[object] = set()
    for network in NETWORKS:
        problems = problems_of(network)
        assert problems, network
        for problem in problems:
            for isa in CONV_LEVELS:
                engine = dnn.Engine(isa=isa, threads=1, l2_bytes=1 << 19)
                case = ConvCase(problem, "any", "any", True, chain)
                specs |= set(dnn.primitive_desc(case.desc(), case.attr(), engine).plan.specs)
    assert len(specs) > 100
    check_names(specs)


ODD = [SumOp(-1.0), ReluOp(-0.5), SumOp(1e-5), ReluOp(1e20), SumOp(0.1), SumOp(1 / 3)]


@pytest.mark.parametrize("op", ODD, ids=repr)
def test_names_of_odd_factors(op: PostOp) -> None:
    check_names({blocked("avx2", 1, post_ops=(op,)), blocked("avx2", 1)})


def test_names_of_close_factors() -> None:
    check_names({blocked("avx2", 1, post_ops=(SumOp(scale),)) for scale in (1.0, 1.0000001, 0.99999999)})
