"""llvm-mca: what is handed to it, what is read from it, and what is said without it."""

import pytest

from asmdnn.analyze import mca
from asmdnn.analyze.build import analyze
from asmdnn.errors import InvalidArguments
from asmdnn.explain.kernels import listing_of
from asmdnn.isa.assembler import Assembler, Line, mem
from tests.explain.problems import ISAS, descriptor
from tests.explain.test_kernels import tile

installed = pytest.mark.skipif(not mca.is_installed(), reason=mca.MISSING)


def lines() -> tuple[Line, ...]:
    asm = Assembler("words", listing=True)
    a, k, x = asm.gp.take("a"), asm.masks.take("k"), asm.vectors(64, 32).take("x", 2)
    with asm.loop(a, "part 1"):
        asm.VMOVUPS(x[0].zeroed(k), mem(a, 64, size=64))
        asm.VFMADD231PS(x[0], x[1], mem(a, 4, size=4, broadcast=16))
        asm.VMOVUPS(mem(a, size=32).masked(k), x[1].ymm)
        asm.VADDPS(x[0], x[0], asm.const(bytes(64)))
    listing = asm.finish().listing
    assert listing is not None
    return listing


def test_words() -> None:
    assert [mca.in_llvm_words(line) for line in lines()] == [
        "vmovups zmm0 {k1}{z}, zmmword ptr [rax+64]",
        "vfmadd231ps zmm0, zmm1, dword ptr [rax+4]{1to16}",
        "vmovups ymmword ptr [rax]{k1}, ymm1",
        "vaddps zmm0, zmm0, [rip]",
        "sub rax, 1",
        "jnz part_1",
    ]


@installed
def test_bounds_of_known_code() -> None:
    """Skylake: two multiply-adds a cycle of 32 bytes, one of 64 on port 0 and one on port 5; a chain waits 4 cycles."""
    asm = Assembler("chains", listing=True)
    y = asm.vectors(32, 16).take("y", 12)
    for x in y[:8]:
        asm.VFMADD231PS(x, y[8], y[9])
    independent = asm.finish().listing
    asm = Assembler("chain", listing=True)
    y = asm.vectors(32, 16).take("y", 12)
    for _ in range(8):
        asm.VFMADD231PS(y[0], y[8], y[9])
    chain = asm.finish().listing
    assert independent and chain
    free, bound = mca.bounds([independent, chain], "skylake-avx512")
    assert free and bound
    assert free.ports == pytest.approx(4, abs=0.1)
    assert free.simulated < 5
    assert bound.simulated == pytest.approx(32, abs=1)  # 8 x 4


@installed
@pytest.mark.parametrize("isa", ISAS)
def test_every_kernel_is_understood(isa: str) -> None:
    listing, _ = listing_of(tile(isa))
    first, second, none = mca.bounds([listing, lines(), []], "skylake-avx512")
    assert first and second and first.ports > 0
    assert none is None


@installed
def test_an_unknown_cpu() -> None:
    with pytest.raises(InvalidArguments, match=r"--mcpu=pentium9 is no CPU that llvm-mca knows"):
        mca.bounds([lines()], "pentium9")


def test_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asmdnn.analyze.mca.shutil.which", lambda program: None)
    analysis = analyze(descriptor("mb1ic8ih6oc16oh6kh1", "avx512_core", 1), "problem")
    assert analysis.mca == mca.MISSING
    assert "apt install llvm" in mca.MISSING
    assert all(part.bound is None for kernel in analysis.kernels for part in kernel.parts)
    assert all(kernel.bound_cycles(simulated=True) is None for kernel in analysis.kernels)


@installed
def test_the_model_is_said_and_chosen() -> None:
    pd = descriptor("mb1ic8ih6oc16oh6kh1", "avx512_core", 1)
    assert analyze(pd, "problem", cpu="icelake-server").mca == "LLVM's model of icelake-server"
    assert mca.model_for("avx512_core_bf16", executable=False) == "cooperlake"


@installed
def test_a_typical_model_stands_in_for_one_that_lacks_the_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an LLVM of 2022 takes a Zen 4 for a Zen 3."""
    names = {True: "znver3", False: "skylake-avx512"}
    monkeypatch.setattr(mca, "model_for", lambda isa, executable: names[executable])
    model, (bound,) = mca.modelled([lines()], "avx512_core", True, "")
    assert model == "skylake-avx512" and bound


@installed
def test_a_model_that_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chosen by the user it is an error; chosen here, the bounds are missing, and the reason is said."""
    pd = descriptor("mb1ic8ih6oc16oh6kh1", "avx512_core", 1)
    with pytest.raises(InvalidArguments, match=r"-mcpu=haswell failed: .*try another --mcpu="):
        analyze(pd, "problem", cpu="haswell")
    monkeypatch.setattr(mca, "model_for", lambda isa, executable: "haswell")
    analysis = analyze(pd, "problem")
    assert "-mcpu=haswell failed" in analysis.mca
    assert all(part.bound is None for kernel in analysis.kernels for part in kernel.parts)
