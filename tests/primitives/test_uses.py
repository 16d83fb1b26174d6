"""A plan that does not use what it was asked for is an error, wherever it comes from: each kind of it, by a mutant."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import PlanError
from asmdnn.planning.phase import NOTHING
from asmdnn.planning.plan import Plan
from asmdnn.primitives.core.implementation import checked, try_all
from tests.primitives.every_kind import engine, pooling, t

DESC = pooling("max", 19, 9, 3, "acdb")
PRODUCT = dnn.MatMul(t(5, 30), t(30, 17), t(5, 17))
CHAIN = dnn.Attr([dnn.Eltwise("relu"), dnn.Eltwise("linear", 2.0, 10.0)])
SCALED = dnn.Attr(scales={"src": 0, "dst": 2})


def plan_of(desc: Any, attr: dnn.Attr) -> Plan:
    return dnn.primitive_desc(desc, attr, engine("avx2")).plan


def rewritten(plan: Plan, change: Any) -> Plan:
    """With other kernels: `change` of the number of each and of its spec."""
    phases = (replace(p, kernels=tuple(change(i, spec) for i, spec in enumerate(p.kernels))) for p in plan.phases)
    return replace(plan, phases=tuple(phases))


def test_post_ops_that_no_kernel_has() -> None:
    with pytest.raises(PlanError, match=r"pixels:avx2 does not apply the post-op Eltwise\(alg='relu'"):
        checked(plan_of(DESC, dnn.Attr()), DESC, CHAIN)
    swapped = rewritten(plan_of(DESC, CHAIN), lambda _, spec: replace(spec, chain=spec.chain[::-1]))
    with pytest.raises(PlanError, match="does not apply the post-op"):
        checked(swapped, DESC, CHAIN)
    assert checked(plan_of(DESC, CHAIN), DESC, CHAIN)


def test_post_ops_that_some_kernels_lack() -> None:
    """Those of the windows at an edge."""
    plan = plan_of(DESC, CHAIN)
    assert len(plan.specs) > 2
    lacking = rewritten(plan, lambda i, spec: spec if i else replace(spec, chain=()))
    with pytest.raises(PlanError, match="has kernels with and without post-ops in phase 0"):
        checked(lacking, DESC, CHAIN)


def test_a_sum_that_a_reorder_forgets() -> None:
    desc, attr = dnn.Reorder(t(3, 17), t(3, 17, tag="ba")), dnn.Attr([dnn.Sum(0.5)])
    assert checked(plan_of(desc, attr), desc, attr)
    with pytest.raises(PlanError, match="does not apply the post-op Sum"):
        checked(plan_of(desc, dnn.Attr([dnn.Sum(0.25)])), desc, attr)


def test_scales_that_are_no_argument_or_that_nothing_reads() -> None:
    plan = plan_of(PRODUCT, SCALED)
    with pytest.raises(PlanError, match="has no argument dst_scales"):
        checked(plan_of(PRODUCT, dnn.Attr()), PRODUCT, SCALED)
    places = (tuple(NOTHING if a.buffer == "dst_scales" else a for a in p.arguments) for p in plan.phases)
    phases = (replace(p, arguments=arguments) for p, arguments in zip(plan.phases, places, strict=True))
    with pytest.raises(PlanError, match="never reads dst_scales"):
        checked(replace(plan, phases=tuple(phases)), PRODUCT, SCALED)


def test_another_type() -> None:
    wanted = replace(DESC, dst=t(*DESC.dst.dims, tag="acdb", dtype=dnn.s32))
    with pytest.raises(PlanError, match="has dst as f32, asked for is s32"):
        checked(plan_of(DESC, dnn.Attr()), wanted, dnn.Attr())


def test_every_implementation_list_is_asked() -> None:
    """The check stands where a planner's answer becomes the plan."""
    forgets = plan_of(DESC, dnn.Attr())
    with pytest.raises(PlanError, match="please report it"):
        list(try_all((lambda *_: forgets,), DESC, CHAIN, engine("avx2")))
    with pytest.raises(PlanError, match="please report it"):
        list(try_all((lambda *_: iter([forgets]),), DESC, CHAIN, engine("avx2")))


def test_indices_beside_post_ops(isa: str) -> None:
    """Maxima with indices once dropped the post-ops that read no tensor."""
    x = np.random.default_rng(2).integers(-8, 8, (2, 5, 8, 12)).astype(np.float32)
    for array in (x, np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)):
        plain, places = dnn.ops.max_pool(array, 2, return_indices=True, engine=dnn.Engine(isa=isa))
        ops = [dnn.Eltwise("linear", 2.0, 10.0)]
        found, others = dnn.ops.max_pool(array, 2, return_indices=True, post_ops=ops, engine=dnn.Engine(isa=isa))
        assert np.array_equal(found, 2 * plain + 10)
        assert np.array_equal(others, places)
