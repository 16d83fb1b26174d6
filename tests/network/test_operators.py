"""The definitions of operators against ONNX's own node tests; how many pass is said exactly."""

from collections import Counter

import numpy as np
import pytest

from asmdnn.errors import AsmdnnError
from asmdnn.network.onnx.reader import OPSETS, read_model
from asmdnn.network.operators.definition import Value
from asmdnn.network.operators.table import operator_of
from tests.network import node_tests
from tests.network.node_tests import arrays_of, tolerances

onnx = pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")

COUNTED_FOR = "1.23.2"  # the version of the package whose tests are counted
COUNTS = {"passed": 1202, "newer operator set": 7, "not read": 41, "no definition": 150, "refused": 4}
NETWORKS = {
    "native": 1014, "numpy": 266, "folded": 39, "type not read": 26, "no definition": 28, "no tensor": 23,
    "other operator set": 4, "refused": 4,
}  # through load_onnx; the first three pass  # fmt: skip


def outcome(case: object) -> str:
    """What becomes of a test case; an answer that differs is an error."""
    data = case.model.SerializeToString()  # type: ignore[attr-defined]
    try:
        body = read_model(data).body
    except AsmdnnError:
        newer = max(entry.version for entry in case.model.opset_import) not in OPSETS  # type: ignore[attr-defined]
        return "newer operator set" if newer else "not read"
    if any(operator_of(node) is None for node in body.nodes):
        return "no definition"
    for given, outputs in arrays_of(case):
        known = {**given, **body.constants}
        for node in body.nodes:
            arrays = [known[name] if name else None for name in node.inputs]
            try:
                found = evaluated(node, arrays)
            except (ValueError, NotImplementedError):
                return "refused"
            known |= zip(node.outputs, found, strict=False)
        for name, wanted in zip(body.outputs, outputs, strict=True):
            assert (known[name].dtype, known[name].shape) == (wanted.dtype, wanted.shape), case.name  # type: ignore[attr-defined]
            np.testing.assert_allclose(known[name], wanted, **tolerances(case, wanted), err_msg=case.name)  # type: ignore[attr-defined]
    return "passed"


def evaluated(node: object, arrays: list[np.ndarray | None]) -> tuple[np.ndarray, ...]:
    """The results, which have the dims and types that were inferred."""
    operator = operator_of(node)  # type: ignore[arg-type]
    assert operator is not None
    with np.errstate(all="ignore"):
        results = operator.results(node, *arrays)  # type: ignore[arg-type]
        values = [
            None if x is None else Value(x.shape, x.dtype, x if i in operator.needs else None)
            for i, x in enumerate(arrays)
        ]
        types = operator.types(node, *values)  # type: ignore[arg-type]
    for result, (shape, dtype) in zip(results, types, strict=False):
        assert (tuple(shape), np.dtype(dtype)) == (result.shape, result.dtype), str(node)
    return results


@pytest.mark.slow  # making the cases takes half a minute
@pytest.mark.filterwarnings("ignore")
def test_node_tests() -> None:
    if onnx.__version__ != COUNTED_FOR:
        pytest.skip(f"the node tests of onnx {COUNTED_FOR} are counted, this is {onnx.__version__}")
    from onnx.backend.test.case.node import collect_testcases

    cases = [case for case in collect_testcases(None) if "expanded" not in case.name]
    assert Counter(map(outcome, cases)) == COUNTS


@pytest.mark.slow
@pytest.mark.isa("avx2")
@pytest.mark.filterwarnings("ignore")
def test_node_tests_as_networks() -> None:
    if onnx.__version__ != COUNTED_FOR:
        pytest.skip(f"the node tests of onnx {COUNTED_FOR} are counted, this is {onnx.__version__}")
    from onnx.backend.test.case.node import collect_testcases

    cases = [case for case in collect_testcases(None) if "expanded" not in case.name]
    assert Counter(map(node_tests.outcome, cases)) == NETWORKS
