"""The machine that the library acts for, and the level in use on it: caps, and what is executed."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

import asmdnn as dnn
from asmdnn import environment
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.isa import cpu
from asmdnn.isa.levels import AVX2, AVX2_VNNI, AVX512_CORE, AVX512_CORE_AMX, AVX512_CORE_BF16
from asmdnn.planning import host
from asmdnn.planning.machine import MACHINES, machine_of
from tests.primitives.conv_case import case_of
from tests.support.python import python

ROOT = Path(__file__).parents[2]
CASE = case_of("mb1ic8ih4oc16oh4kh3ph1 any any bias relu")
Pretend = Callable[[frozenset[str]], None]


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (environment.MACHINE, environment.MAX_CPU_ISA):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def pretend() -> Iterator[Pretend]:
    """Makes the host a machine with exactly these features."""
    with ExitStack() as stack:
        machine = machine_of("generic_avx2")
        yield lambda features: stack.enter_context(host.as_machine(replace(machine, features=features))) and None


def test_the_machine_at_hand_is_the_default() -> None:
    machine = host.host()
    assert machine is host.detected()
    assert machine.features == cpu.cpu_features()
    assert machine.cores == len(os.sched_getaffinity(0))
    assert machine.name in MACHINES
    assert cpu.cache_sizes().l2_bytes in (0, machine.caches.l2_bytes)


def test_the_best_level_is_used(pretend: Pretend) -> None:
    pretend(AVX512_CORE_BF16.features)
    assert host.effective_isa() is AVX512_CORE_BF16
    assert AVX2_VNNI not in host.supported_isas()
    pretend(AVX2.features | {"avx_vnni"})
    assert host.effective_isa() is AVX2_VNNI


def test_without_avx2_the_library_refuses(pretend: Pretend) -> None:
    pretend(AVX2.features - {"avx2", "fma"})
    with pytest.raises(Unimplemented, match="this CPU cannot run avx2, the lowest level there is: it lacks avx2, fma"):
        host.effective_isa()
    with pytest.raises(Unimplemented, match="it lacks avx2, fma"):
        host.require_executable("avx2")


def test_a_cap_ends_with_its_block_and_nests(pretend: Pretend) -> None:
    pretend(AVX512_CORE_AMX.features)
    with host.max_cpu_isa("avx512_core_bf16"):
        assert host.effective_isa() is AVX512_CORE_BF16
        with host.max_cpu_isa("avx2"):
            assert host.effective_isa() is AVX2
            with host.max_cpu_isa("avx512_core_amx"):
                assert host.effective_isa() is AVX2  # a cap only ever lowers
        assert host.effective_isa() is AVX512_CORE_BF16
    assert host.effective_isa() is AVX512_CORE_AMX


def test_a_cap_below_a_level_that_is_missing(pretend: Pretend) -> None:
    pretend(AVX512_CORE.features)
    with host.max_cpu_isa("avx2_vnni"):
        assert host.effective_isa() is AVX2


def test_a_cap_holds_in_its_thread_and_task_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(environment.MACHINE, "skylake_sp")
    seen = []
    with host.max_cpu_isa("avx2"):
        thread = threading.Thread(target=lambda: seen.append(host.effective_isa()))
        thread.start()
        thread.join()
    assert seen == [AVX512_CORE]

    async def capped(name: str, entered: asyncio.Event, go_on: asyncio.Event) -> str:
        with host.max_cpu_isa(name):
            entered.set()
            await go_on.wait()
            return host.effective_isa().name

    async def both() -> list[str]:
        first, second = asyncio.Event(), asyncio.Event()
        return await asyncio.gather(capped("avx2", first, second), capped("avx512_core", second, first))

    assert asyncio.run(both()) == ["avx2", "avx512_core"]


def test_the_variable_is_read_at_every_call(pretend: Pretend, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(AVX512_CORE_AMX.features)
    monkeypatch.setenv("ASMDNN_MAX_CPU_ISA", "AVX512_core ")
    assert host.effective_isa() is AVX512_CORE
    with host.max_cpu_isa("avx2"):
        assert host.effective_isa() is AVX2
    monkeypatch.setenv("ASMDNN_MAX_CPU_ISA", "")
    assert host.effective_isa() is AVX512_CORE_AMX


def test_a_wrong_variable_is_named_with_the_choice(pretend: Pretend, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(AVX2.features)
    monkeypatch.setenv("ASMDNN_MAX_CPU_ISA", "avx3")
    with pytest.raises(InvalidArguments, match=r"ASMDNN_MAX_CPU_ISA=avx3 is not an ISA level.*avx2, .*avx512_core_amx"):
        host.effective_isa()
    with pytest.raises(InvalidArguments, match="isa 'avx3' is not one of"), host.max_cpu_isa("avx3"):
        pass


def test_a_variable_that_names_no_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(environment.MACHINE, "pentium")
    with pytest.raises(InvalidArguments, match=r"ASMDNN_MACHINE=pentium: .*one of generic_avx512, .*zen3.*or unset it"):
        dnn.Engine()


@pytest.mark.parametrize("name", MACHINES)
def test_defaults_follow_the_given_machine(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By variable, by context, and named by the engine: the same engine, whose plan is a plan."""
    machine = machine_of(name)
    named = dnn.Engine(machine=name, threads=1)
    assert (named.machine, named.isa, named.l2_bytes) == (name, machine.isas[-1].name, machine.caches.l2_bytes)
    with host.as_machine(machine):
        assert dnn.Engine(threads=1) == named
    monkeypatch.setenv(environment.MACHINE, name.upper())
    assert dnn.Engine(threads=1) == named
    assert dnn.Engine(isa="avx2", threads=1).machine == name
    pd = dnn.primitive_desc(CASE.desc(), CASE.attr(), named)
    pd.plan.check()
    assert pd.implementation == f"direct:{'avx512_core' if 'avx512' in named.isa else 'avx2'}"


def test_what_another_machine_has_is_executed_only_where_this_cpu_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "cpu_features", lambda: AVX2.features)
    with host.as_machine(machine_of("sapphire_rapids")):
        assert host.executable_isas() == (AVX2,)
        host.require_executable("avx2")
        pd = dnn.primitive_desc(CASE.desc(), CASE.attr())
        message = r"avx512_core_amx cannot be executed here \(as if on sapphire_rapids\), use avx2 or a lower level"
        with pytest.raises(Unimplemented, match=message):
            dnn.Primitive(pd)


def test_what_this_cpu_has_is_not_executed_where_the_machine_lacks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "cpu_features", lambda: AVX512_CORE_AMX.features)
    with host.as_machine(machine_of("zen3")), pytest.raises(Unimplemented, match="as if on zen3"):
        host.require_executable("avx512_core")


def test_a_process_acts_as_another_machine() -> None:
    script = "import asmdnn; e = asmdnn.Engine(); print(e.isa, e.l2_bytes, e.machine)"
    assert python(script, ASMDNN_MACHINE="skylake_sp").split() == ["avx512_core", "1048576", "skylake_sp"]
