"""Integers through every implementation of every kind: where arithmetic is exact, or rounds once, all bits are equal.

The answers are those of the drivers of asmdnn bench, in float64 by numpy.  Here they bear no tolerance: a mean is the
exact sum, divided and rounded once, however a plan cuts the sum.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.driver import AnyCase, TensorData
from asmdnn.bench.drivers import driver_names
from asmdnn.bench.options import Reader
from asmdnn.bench.rank import every_plan
from asmdnn.bench.values import decoded, joined, rounded
from tests.primitives.every_kind import Array, engine, integers

PRODUCTS = """
--matmul 5x70:70x33 1x40:40x136 40x90:90x1 20x3:3x64 26x300:300x264 100x80:80x64 26x1000:1000x30 2x3x20:2x20x17
--matmul --stag=ba --wtag=ba --dtag=ba 70x40:40x33 --gemm 5x30:30x17
--ip mb5ic9ih3oc19 mb1ic40oc136 --ip --dir=BWD_D,BWD_WB mb5ic9ih3oc8 mb70ic30oc20
"""
IMAGES = """
--conv mb2ic20ih8oc24kh3ph1 mb2ic3ih9oc24kh3 mb2ic20ih8oc2kh3 g16mb2ic16ih8oc16kh3ph1 g4mb2ic16ih8oc16kh3
--conv mb1ic300ih4oc24kh1
--conv --stag=axb --dtag=axb --wtag=abx mb2ic20ih8oc24kh3ph1 mb2ic20ih8oc24kh1 mb2ic40iw50oc24kw3
--deconv mb2ic20ih5oc24kh3sh2 mb2ic20ih5oc2kh3sh2 g16mb2ic16ih5oc16kh3sh2 mb2ic20ih5oc24kh3
"""
WINDOWS = """
--pool --tag=abx,axb,aBx8b --alg=max,avg_p,avg_np mb2ic19ih9kh3ph1 mb2ic8ih14kh9ph1 mb1ic5id8kd4pd1 mb2ic9ih7kh7
--pool --tag=abx --alg=max,avg_p mb2ic3iw40kw5pw2 mb2ic19ih13kh3sh3
--pool --dir=FWD_D --tag=abx,axb mb2ic19ih9kh3ph1 mb2ic8ih10kh5
--pool --dt=bf16,f16,s8,u8 --tag=abx,axb --alg=max,avg_p mb2ic16ih14kh9ph1 mb2ic16ih9kh3ph1
--resampling --alg=nearest,linear --tag=abx,axb,aBx8b mb2ic9_ih4oh8 mb2ic9_iw5ow20
--resampling --sdt=u8 --ddt=u8 mb2ic9_ih4oh8
"""
MAPS = """
--eltwise --tag=abx,aBx8b --alg=abs,square,round 3x19x5 --alpha=2 --alg=relu 3x19x5 --beta=3 --alg=linear 3x19x5
--eltwise --alpha=0 --beta=0 --dir=BWD_D --alg=relu,square 3x19x5
--binary --alg=add,mul,max,ge --stag=abx:abx,axb:abx 3x19x5:3x19x1
--sum --scales=2:-1 --sdt=f32:f32 --stag=abx:axb 3x19x5
--prelu --stag=abx,axb 3x19x5:1x19x1 --shuffle --tag=abx,axb --group=4 --axis=1 2x16x5 --dropout --p=0.5 3x19
--reorder --stag=abx,axb --dtag=axb,aBx8b,aBx16b 2x17x3x5 --concat --stag=abx:axb --axis=1 3x4x5:3x2x5 --gather 9x5:3
--scatter --alg=add 9x5:30
"""
SUMS = """
--reduction --stag=abx,axb --alg=sum,mean,max,min 3x19x5:3x1x5 3x700x2:3x1x2
--reduction --alg=sum,mean 7x9000:7x1 70000:1 2x30000x3:2x1x3
--reduction --alg=norm_lp_power_p_sum --p=1,2 3x19x5:3x1x5 9x900:9x1
--reduction --sdt=bf16 --ddt=f32 --alg=sum,mean 9x700:9x1
--cumsum --axis=1 --exclusive=false,true 3x19x5 3x700 --topk --k=3 --axis=1 --values=true 3x19x5
"""
PROBLEMS = {"products": PRODUCTS, "images": IMAGES, "windows": WINDOWS, "maps": MAPS, "sums": SUMS}
# Roots, exponentials and functions of gates round at each step; no two ways to compute them need agree.
ROUNDED = {"bnorm", "gnorm", "lnorm", "lrn", "rnn", "sdpa", "softmax"}


def cases_of(text: str) -> list[AnyCase]:
    reader = Reader()
    reader.read(text.split(), Path())
    return reader.cases


def whole(name: str, array: Array) -> Array:
    """Small integers instead of f32 numbers; what else there is are integers already."""
    if array.dtype != np.float32 or np.isnan(array).any():
        return array
    return integers(name, dnn.MemoryDesc(array.shape, dnn.f32, "abcdef"[: array.ndim])).astype(np.float32)


def computed(pd: dnn.PrimitiveDesc, arrays: dict[str, Array]) -> Array:
    """All results, one after the other."""
    memories = {name: dnn.Memory.from_numpy(arrays[name], desc) for name, desc in pd.plan.tensors.items()}
    dnn.Primitive(pd).execute(**memories)
    return joined([decoded(memories[n].numpy(), memories[n].desc.dtype) for n in pd.plan.outputs])


def check(case: AnyCase, isa: str, candidates: bool) -> int:
    """How many plans were run."""
    work = case.driver.work(case)
    desc, attr = work.describe()
    data: Any = work.data(True)
    if not work.exactness[0]:
        data = TensorData({name: whole(name, array) for name, array in data.arrays.items()}, exact=True)
    values, plans = work.answer(data).values, plans_of(desc, attr, isa, candidates)
    for name, plan in plans:
        found = computed(dnn.PrimitiveDesc(desc, attr, engine(isa), plan), data.arrays)
        wanted = rounded(values, dnn.f32) if found.dtype == np.float32 else values
        wrong = found != wanted
        at = np.unravel_index(int(wrong.argmax()), wrong.shape)
        assert not wrong.any(), f"{case} by {name}: {found[at]:.9g} instead of {wanted[at]:.9g} at {at}"
    return len(plans)


def plans_of(desc: Any, attr: dnn.Attr, isa: str, candidates: bool) -> list[tuple[str, Any]]:
    """Those of all implementations, or all that planners choose from, too."""
    if candidates:
        return list(every_plan(desc, attr, engine(isa)))
    answers = dnn.implementations(desc, attr, engine(isa))
    return [(a.implementation, a.plan) for a in answers if isinstance(a, dnn.PrimitiveDesc)]


@pytest.mark.parametrize("problems", PROBLEMS)
def test_every_implementation(isa: str, problems: str) -> None:
    for case in cases_of(PROBLEMS[problems]):
        assert check(case, isa, candidates=False)


@pytest.mark.slow
@pytest.mark.parametrize("problems", PROBLEMS)
def test_every_candidate(isa: str, problems: str) -> None:
    for case in cases_of(PROBLEMS[problems]):
        assert check(case, isa, candidates=True)


def test_problems_are_of_every_driver() -> None:
    drivers = {case.driver.name for text in PROBLEMS.values() for case in cases_of(text)}
    assert drivers | ROUNDED == set(driver_names())
