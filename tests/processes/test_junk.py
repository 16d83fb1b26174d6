"""Every public callable, with junk in the place of every argument: it works, or raises one of the library's errors.

The message has a bounded length, whatever was passed.  BufferError is documented where arrays cannot say a format.
"""

import inspect
import warnings
from pathlib import Path

import pytest

import asmdnn as dnn
from tests.processes import junk, junk_along, junk_layers

# Not called with junk: constants and types, numpy's functions under another name, and what is made by others.
NO_ENTRY = {
    "AsmdnnError", "InvalidArguments", "Unimplemented", "OutOfMemory", "DataType", "PropKind", "Algorithm", "Refusal",
    "PrimitiveDesc", "__version__", "f32", "bf16", "f16", "s32", "s8", "u8", "ops", "show", "absolute", "ceil", "clip",
    "cos", "exp", "floor", "fmod", "log", "logistic", "maximum", "minimum", "mod", "power", "rint", "sign", "sin",
    "sqrt", "square", "tanh", "trunc", "where",
    "Graph", "Network", "load_onnx",  # tests/network/test_junk.py
    "MemoryReport", "memory_report", "clear_caches", "set_memory_limits",  # of the process; tests/test_memory_use.py
}  # fmt: skip
UNBOUNDED = {"MatMulRows.primitive_desc"}  # any number of rows is legal, and a plan grows with it


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, junk.Call]:
    directory = tmp_path_factory.mktemp("packs")
    dnn.write_pack(directory / "valid.pack", [junk.matmul_pd()])
    described, called = (
        {**junk.descriptions(), **junk_layers.described(), **junk_along.described()},
        {**junk.functions(), **junk_layers.called(), **junk_along.called()},
    )
    return {**described, **junk.values(), **junk.primitives(directory), **called}


NAMES = (
    *junk.descriptions(), *junk_layers.described(), *junk_along.described(), *junk.values(),
    "primitive_desc", "implementations", "Primitive", "Primitive.execute", "Primitive.execute with scratchpad",
    "Primitive.bind", "MatMulRows", "MatMulRows.execute", "load_pack", "write_pack",
    *junk.functions(), *junk_layers.called(), *junk_along.called(),
)  # fmt: skip


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("name", NAMES)
def test_junk(name: str, calls: dict[str, junk.Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a pack may be written under any name
    call, valid = calls[name]
    call(**valid())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(junk.failures(call, valid))
    assert found == [], f"{len(found)} of {len(valid()) * len(junk.JUNK)}"


def test_every_public_callable_has_an_entry(calls: dict[str, junk.Call]) -> None:
    assert set(calls) == set(NAMES)
    public = {name for name in dnn.__all__ if name not in NO_ENTRY and callable(getattr(dnn, name))}
    assert public <= set(calls)


@pytest.mark.parametrize("kind", [dnn.MemoryDesc, dnn.Primitive, dnn.MatMulRows, dnn.Memory])
def test_every_public_method_has_an_entry(kind: type, calls: dict[str, junk.Call]) -> None:
    """Methods that take arguments."""
    for name, method in inspect.getmembers(kind, callable):
        if not name.startswith("_") and len(inspect.signature(method).parameters) > (not inspect.ismethod(method)):
            assert f"{kind.__name__}.{name}" in calls.keys() | UNBOUNDED
