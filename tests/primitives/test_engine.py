"""Engine and Stream: what they default to, what caps do, and what they refuse."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

import asmdnn as dnn
from asmdnn.isa import cpu
from asmdnn.isa.levels import LEVELS, isa_of
from asmdnn.planning.host import as_machine, effective_isa
from asmdnn.planning.machine import Machine, machine_of
from asmdnn.runtime.threads import max_threads
from tests.primitives.conv_case import MACHINE, case_of, proven
from tests.support.plans import proved_desc

CASE = case_of("mb1ic8ih4oc16oh4kh3ph1 any any bias relu")


def test_defaults() -> None:
    engine = dnn.Engine()
    assert (engine.kind, engine.isa, engine.threads) == ("cpu", effective_isa().name, max_threads())
    assert engine.l2_bytes >= 1 << 17


def test_a_frozen_value() -> None:
    engine = dnn.Engine("cpu", isa="avx2", threads=2)
    assert engine == dnn.Engine("cpu", "avx2", 2)
    assert hash(engine) == hash(dnn.Engine("cpu", "avx2", 2))
    assert engine != dnn.Engine("cpu", "avx2", 1)
    assert repr(engine) == "Engine(kind='cpu', isa='avx2', threads=2)"
    with pytest.raises(FrozenInstanceError):
        engine.threads = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "gpu"}, "kind must be 'cpu', not 'gpu'"),
        ({"isa": "sse2"}, "isa 'sse2' is not one of avx2, "),
        ({"isa": "AVX2"}, "isa 'AVX2' is not one of"),
        ({"threads": -1}, "threads must be an integer of at least 1, got -1"),
        ({"threads": True}, "threads must be"),
        ({"threads": 1.5}, "threads must be"),
        ({"threads": "2"}, "threads must be"),
        ({"machine": ["zen3"]}, "is not one of generic_avx512, "),
        ({"machine": "z80"}, "machine 'z80' is not one of generic_avx512, "),
        ({"l2_bytes": -1}, "l2_bytes must be a number of bytes, not -1"),
        ({"l2_bytes": 1e6}, "l2_bytes must be"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        dnn.Engine(**options)


def test_more_threads_than_a_process_can_have() -> None:
    """libgomp ends the process when a thread cannot be created: such a count is refused before."""
    with pytest.raises((dnn.InvalidArguments, dnn.Unimplemented), match="threads"):
        dnn.Engine(threads=10**6)


def test_the_variable_caps_from_now_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASMDNN_MAX_CPU_ISA", "avx2")
    assert dnn.Engine().isa == "avx2"
    monkeypatch.delenv("ASMDNN_MAX_CPU_ISA")
    assert dnn.Engine().isa == effective_isa().name


@pytest.mark.parametrize("name", ["avx3", "avx2,", "2"])
def test_a_variable_that_names_no_level(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("ASMDNN_MAX_CPU_ISA", name)
    with pytest.raises(dnn.InvalidArguments, match=rf"ASMDNN_MAX_CPU_ISA={name} is not an ISA level.* avx2, .*unset"):
        dnn.Engine()


def test_the_context_caps_and_nests() -> None:
    with dnn.max_cpu_isa("avx512_core"), dnn.max_cpu_isa("avx2"):
        assert dnn.Engine().isa == "avx2"
        with dnn.max_cpu_isa("avx512_core"):
            assert dnn.Engine().isa == "avx2", "an inner block does not lift the cap"
    with pytest.raises(dnn.InvalidArguments, match="'avx1'"), dnn.max_cpu_isa("avx1"):
        pass


def has(features: frozenset[str]) -> AbstractContextManager[Machine]:
    """The library on a machine with these features."""
    return as_machine(replace(machine_of("generic_avx2"), features=features))


def test_a_cpu_without_avx2() -> None:
    with has(frozenset({"avx", "f16c"})):
        with pytest.raises(dnn.Unimplemented, match=r"this CPU cannot run avx2.*lacks avx2, bmi1, bmi2, fma"):
            dnn.Engine()
        with pytest.raises(dnn.Unimplemented, match="cannot"):
            dnn.Primitive(proven(CASE, "avx2"))


@pytest.fixture
def avx512_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A CPU that has, as far as detection says, AVX-512; nothing is executed."""
    features = isa_of("avx512_core").features
    monkeypatch.setattr(cpu, "cpu_features", lambda: features)
    monkeypatch.delenv("ASMDNN_MAX_CPU_ISA", raising=False)
    with has(features):
        yield


@pytest.mark.usefixtures("avx512_machine")
def test_a_cap_forbids_what_the_cpu_has(monkeypatch: pytest.MonkeyPatch) -> None:
    pd = proven(CASE, "avx512_core")
    assert dnn.Engine().isa == "avx512_core"
    dnn.Primitive(pd)
    with dnn.max_cpu_isa("avx2"):
        assert dnn.Engine().isa == "avx2"
        with pytest.raises(dnn.Unimplemented, match=r"isa avx512_core cannot be executed here.*, use avx2"):
            dnn.Primitive(pd)
    monkeypatch.setenv("ASMDNN_MAX_CPU_ISA", "avx2")
    with pytest.raises(dnn.Unimplemented, match=r"isa avx512_core cannot be executed here.*, use avx2"):
        dnn.Primitive(pd)


def test_planning_needs_no_machine_but_execution_does() -> None:
    with has(isa_of("avx2").features):
        pd = proved_desc(CASE.desc(), CASE.attr(), dnn.Engine(isa="avx512_core", machine=MACHINE))
        assert pd.implementation == "direct:avx512_core"
        with pytest.raises(dnn.Unimplemented, match=r"isa avx512_core cannot be executed here.*, use avx2"):
            dnn.Primitive(pd)


@pytest.mark.parametrize("isa", [level.name for level in LEVELS])
def test_the_default_engine_of_every_cpu_has_kernels(monkeypatch: pytest.MonkeyPatch, isa: str) -> None:
    """A better CPU must not make the default fail."""
    monkeypatch.delenv("ASMDNN_MAX_CPU_ISA", raising=False)
    with has(isa_of(isa).features):
        assert dnn.Engine().isa == isa
        pd = proved_desc(CASE.desc(), CASE.attr())
        assert pd.plan.specs == dnn.primitive_desc(CASE.desc(), CASE.attr(), dnn.Engine(isa=isa)).plan.specs
    assert pd.implementation == f"direct:{'avx512_core' if 'avx512' in isa else 'avx2'}"


def test_engines_of_two_machines_differ() -> None:
    """Also where level, threads and L2 agree: plans of one are no plans of the other."""
    zen, haswell = (dnn.Engine(isa="avx2", threads=1, l2_bytes=1 << 18, machine=name) for name in ("zen3", "haswell"))
    assert zen != haswell
    assert zen == dnn.Engine(isa="avx2", threads=1, l2_bytes=1 << 18, machine="zen3")
    assert dnn.Engine(machine="haswell", threads=1).l2_bytes == 256 << 10


def test_stream() -> None:
    engine = dnn.Engine()
    with dnn.Stream(engine) as stream:
        assert stream.engine is engine
        stream.wait()
    with pytest.raises(dnn.InvalidArguments, match="engine must be an Engine, not str"):
        dnn.Stream("cpu")  # type: ignore[arg-type]
