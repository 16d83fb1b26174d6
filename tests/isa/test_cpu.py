import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.isa import cpu
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.levels import AVX2, AVX2_VNNI, AVX512_CORE, AVX512_CORE_AMX, AVX512_CORE_BF16, LEVELS

LINUX_NAMES = {"avx512_fp16", "avx512_vnni", "avx512_bf16", "amx_tile", "amx_int8", "amx_bf16", "avx_vnni"}
Pretend = Callable[[frozenset[str]], None]


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Pretend:
    """Makes the machine one with exactly these features, and without a cap."""
    monkeypatch.delenv(cpu.MAX_ISA_VARIABLE, raising=False)
    return lambda features: monkeypatch.setattr(cpu, "cpu_features", lambda: features)


def test_features_equal_those_of_the_system() -> None:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        pytest.skip("no /proc/cpuinfo")
    flags = set(next(line for line in lines if line.startswith("flags")).split(":")[1].split())
    known = {feature.name for feature in cpu._FEATURES}
    assert cpu.cpu_features() == flags & known


@pytest.mark.parametrize(
    ("state", "kept"),
    [(0xE7, {"avx2", "avx512f", "bmi2"}), (0x07, {"avx2", "bmi2"}), (0x67, {"avx2", "bmi2"}), (0x03, {"bmi2"}),
     (0x600E7, {"avx2", "avx512f", "bmi2", "amx_tile"}), (0x20007, {"avx2", "bmi2"})],
)  # fmt: skip
def test_a_feature_needs_the_registers_saved(state: int, kept: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "cpuid", lambda leaf, subleaf=0: (0xFFFFFFFF,) * 4)
    monkeypatch.setattr(cpu, "xcr0", lambda: state)
    watched = {"avx2", "avx512f", "bmi2", "amx_tile"}
    assert cpu.cpu_features.__wrapped__() & watched == kept


def test_another_architecture_has_no_features(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert cpu.cpu_features.__wrapped__() == frozenset()
    assert cpu.cache_sizes.__wrapped__() == cpu.CacheSizes(0, 0, 0)


def test_the_best_level_is_used(pretend: Pretend) -> None:
    pretend(AVX512_CORE_BF16.features)
    assert cpu.effective_isa() is AVX512_CORE_BF16
    assert AVX2_VNNI not in cpu.supported_isas()
    pretend(AVX2.features | {"avx_vnni"})
    assert cpu.effective_isa() is AVX2_VNNI


def test_without_avx2_the_library_refuses(pretend: Pretend) -> None:
    pretend(AVX2.features - {"avx2", "fma"})
    with pytest.raises(Unimplemented, match="this CPU cannot run avx2, the lowest level there is: it lacks avx2, fma"):
        cpu.effective_isa()


def test_a_cap_ends_with_its_block_and_nests(pretend: Pretend) -> None:
    pretend(AVX512_CORE_AMX.features)
    with cpu.max_cpu_isa("avx512_core_bf16"):
        assert cpu.effective_isa() is AVX512_CORE_BF16
        with cpu.max_cpu_isa("avx2"):
            assert cpu.effective_isa() is AVX2
            with cpu.max_cpu_isa("avx512_core_amx"):
                assert cpu.effective_isa() is AVX2  # a cap only ever lowers
        assert cpu.effective_isa() is AVX512_CORE_BF16
    assert cpu.effective_isa() is AVX512_CORE_AMX


def test_a_cap_below_a_level_that_is_missing(pretend: Pretend) -> None:
    pretend(AVX512_CORE.features)
    with cpu.max_cpu_isa("avx2_vnni"):
        assert cpu.effective_isa() is AVX2


def test_a_cap_holds_in_its_thread_and_task_only(pretend: Pretend) -> None:
    pretend(AVX512_CORE.features)
    seen = []
    with cpu.max_cpu_isa("avx2"):
        thread = threading.Thread(target=lambda: seen.append(cpu.effective_isa()))
        thread.start()
        thread.join()
    assert seen == [AVX512_CORE]

    async def capped(name: str, entered: asyncio.Event, go_on: asyncio.Event) -> str:
        with cpu.max_cpu_isa(name):
            entered.set()
            await go_on.wait()
            return cpu.effective_isa().name

    async def both() -> list[str]:
        first, second = asyncio.Event(), asyncio.Event()
        return await asyncio.gather(capped("avx2", first, second), capped("avx512_core", second, first))

    assert asyncio.run(both()) == ["avx2", "avx512_core"]


def test_the_variable_is_read_at_every_call(pretend: Pretend, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(AVX512_CORE_AMX.features)
    monkeypatch.setenv("ASMDNN_MAX_CPU_ISA", "avx512_core")
    assert cpu.effective_isa() is AVX512_CORE
    with cpu.max_cpu_isa("avx2"):
        assert cpu.effective_isa() is AVX2
    monkeypatch.setenv("ASMDNN_MAX_CPU_ISA", "")
    assert cpu.effective_isa() is AVX512_CORE_AMX


def test_a_wrong_variable_is_named_with_the_choice(pretend: Pretend, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(AVX2.features)
    monkeypatch.setenv("ASMDNN_MAX_CPU_ISA", "avx3")
    with pytest.raises(InvalidArguments, match=r"ASMDNN_MAX_CPU_ISA=avx3 is not an ISA level.*avx2, .*avx512_core_amx"):
        cpu.effective_isa()
    with pytest.raises(InvalidArguments, match="isa 'avx3' is not one of"), cpu.max_cpu_isa("avx3"):
        pass


def test_cache_sizes_equal_those_of_the_system() -> None:
    directory = Path("/sys/devices/system/cpu/cpu0/cache")
    if not directory.is_dir():
        pytest.skip(f"no {directory}")
    sizes = {}
    for index in directory.glob("index*"):
        if (index / "type").read_text().strip() in ("Data", "Unified"):
            kilobytes = (index / "size").read_text().strip().removesuffix("K")
            sizes[int((index / "level").read_text())] = int(kilobytes) << 10
    found = cpu.cache_sizes()
    assert (found.l1d_bytes, found.l2_bytes, found.l3_bytes) == (sizes.get(1, 0), sizes.get(2, 0), sizes.get(3, 0))


def test_caches_of_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def leaf_4(kind: int, level: int, ways: int, sets: int) -> tuple[int, int, int, int]:
        return level << 5 | kind, (ways - 1) << 22 | 63, sets - 1, 0

    caches = [leaf_4(1, 1, 12, 64), leaf_4(2, 1, 8, 64), leaf_4(3, 2, 16, 2048), leaf_4(3, 3, 15, 1 << 16), (0,) * 4]
    monkeypatch.setattr(cpu, "cpuid", lambda leaf, subleaf=0: caches[subleaf] if leaf == 4 else (0, 0, 0, 0))
    assert cpu.cache_sizes.__wrapped__() == cpu.CacheSizes(48 << 10, 2 << 20, 60 << 20)


def test_code_for_every_level_is_generated_everywhere() -> None:
    for level in LEVELS:
        asm = Assembler(level.name)
        x = asm.vectors(level.vector_bytes, 16).take("x")
        asm.VMOVUPS(x, mem(asm.frame, level.vector_bytes))
        asm.ret()
        assert asm.finish().data.endswith(b"\xc5\xf8\x77\xc3")  # vzeroupper, ret
