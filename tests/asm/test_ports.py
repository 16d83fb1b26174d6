"""llvm-mca's bounds of a function's loops, which can be counted by hand."""

from typing import Any

import pytest

from asmdnn import asm
from asmdnn.analyze import mca
from asmdnn.errors import InvalidArguments, Unimplemented


@asm.function("void scale(float *x, size_t n)", isa=("avx2", "avx512_core"), reads={"x": "4*n"}, writes={"x": "4*n"})
def scale(f: Any, x: Any, n: Any) -> None:
    """Twelve multiplications a pass, of which Skylake starts two a cycle; and a chain of four divisions."""
    v = f.vector("f32")
    factors = v.registers.take("factor", 12)
    with f.steps(n, 12, "products"):
        for y in factors:
            f.VMULPS(y, y, y)
    with f.steps(n, 1, "chain"):
        for _ in range(4):
            f.VADDPS(factors[0], factors[0], factors[1])
    f.ret()


@pytest.mark.skipif(not mca.is_installed(), reason=mca.MISSING)
def test_bounds_of_loops() -> None:
    found = scale.at("avx2").bounds("skylake")
    assert found.cpu == "skylake"
    products, chain, outside = found.loops
    assert (products.name, chain.name, outside.name) == ("products", "chain", "")
    assert products.instructions == 12 + 3  # SUB, CMP, JAE
    assert products.ports == pytest.approx(6, abs=0.5)
    assert chain.simulated == pytest.approx(16, abs=0.5)  # four additions of four cycles, one after the other
    assert "15 instructions" in str(products) and "LLVM's model of skylake" in str(found)


@pytest.mark.skipif(not mca.is_installed(), reason=mca.MISSING)
def test_of_a_level_that_this_cpu_may_lack() -> None:
    assert scale.at("avx512_core").bounds().loops[0].ports > 0
    with pytest.raises(InvalidArguments, match="no CPU that llvm-mca knows"):
        scale.bounds("skylark")


def test_without_llvm_mca(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mca, "is_installed", lambda: False)
    with pytest.raises(Unimplemented, match="bounds of 'scale': llvm-mca is not installed: apt install llvm"):
        scale.at("avx2").bounds()
