"""Verdicts on results of f16 that are summed in f16: a bound of their own, and no exact sums are asked of them."""

import pytest

from asmdnn.isa.dot import F16
from tests.conformance.running import Conforming
from tests.support.cases import read

LEVEL = "avx512_core_fp16"


@pytest.mark.emulated(LEVEL)
@pytest.mark.parametrize("words", [
    "--matmul --dt=f16:f16:f32 9x300:300x33",
    "--ip --dir=FWD_B --dt=f16 mb5ic150oc19",
    "--conv --dir=FWD_B --dt=f16:f16:f32 mb1ic80ih5oc17kh3ph1",
    "--conv --alg=auto --dir=FWD_I --dt=f16 mb1ic33ih4oc20kh1ph0",
    "--conv --alg=auto --dir=FWD_I --dt=f16 mb1ic33ih4oc20kh3ph1",
    "--deconv --dir=FWD_I --dt=f16:f16:f32 mb1ic40ih3oc17kh3sh2ph1",
])  # fmt: skip
@pytest.mark.parametrize("mode", ["any", "f16"])
def test_verdicts(words: str, mode: str) -> None:
    driver, *others = words.split()
    (case,) = read(f"{driver} --attr-acc-mode={mode} {' '.join(others)}")
    conforming = Conforming(case)
    assert conforming.work.exactness == (False,)
    pd = conforming.planned(LEVEL)
    types = [getattr(getattr(spec, "tile", spec), "types", None) for spec in pd.plan.specs]
    assert F16 in types
    conforming.run_emulated(pd)
