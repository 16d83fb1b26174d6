"""What the system has no memory for is OutOfMemory, whoever allocates: the library's error, not numpy's or Python's.

No other test meets a full system, so nothing saw numpy's MemoryError.  Here a process has a limit on its address space,
which is raised step by step, so that the allocations of a call are in turn those that fail.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.memory.allocation import allocated, within_memory
from asmdnn.primitives.core import implementation
from tests.test_imports import PACKAGE, ROOT

SCRIPT = Path(__file__).with_name("calls_without_memory.py")
# Allocations from 64 KiB on are mappings of their own, and no thread has a heap that was counted before.
MALLOC = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1"}

WATCHED = ("ops/*.py", "memory/*.py", "runtime/scratch.py", "blas/*.py")
MAKERS = {
    "array", "arange", "ascontiguousarray", "concatenate", "copy", "einsum", "empty", "empty_like", "full", "full_like",
    "multiply", "ones", "ones_like", "repeat", "require", "stack", "take", "tile", "zeros", "zeros_like",
}  # fmt: skip
METHODS = {"astype", "copy", "flatten"}
SMALL = {  # of a size that no caller chooses, or inside what is called by `allocated`
    "asmdnn/ops/masking.py": "a number",
    "asmdnn/memory/winograd.py": "a matrix of 8 rows; Memory.from_numpy calls _stored",
    "asmdnn/memory/split.py": "Memory.from_numpy calls _stored",
    "asmdnn/memory/traced.py": "as many numbers as a tensor has dims",
    "asmdnn/memory/desc.py": "in a lambda that `allocated` calls",
}


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_every_array_that_does_not_fit_is_out_of_memory(every: int) -> None:
    environment = {**os.environ, **MALLOC, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(SCRIPT), str(every)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(lines) > 30 // every
    assert [line for line in lines if len(line) > 3 or int(line[1]) == 0 or int(line[2]) == 0] == []


def test_messages() -> None:
    with pytest.raises(dnn.OutOfMemory, match=r"Unable to allocate .* for an array .*: free memory"):
        allocated(np.empty, (1 << 50,), np.uint8)
    with pytest.raises(dnn.OutOfMemory, match="the system has no more memory: free memory"):
        within_memory(full)()
    with pytest.raises(dnn.OutOfMemory, match="bytes of scratchpad"):
        within_memory(refused)()


def full(*_: object) -> None:
    raise MemoryError


def refused() -> None:
    raise dnn.OutOfMemory("bytes of scratchpad")


def test_planning_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = (dnn.MemoryDesc(dims, dnn.f32, "ab") for dims in ((61, 7), (7, 5), (61, 5)))
    engine = dnn.Engine(isa="avx2", threads=1)
    dnn.primitive_desc(dnn.MatMul(c, dnn.MemoryDesc((5, 7), dnn.f32, "ab"), a), engine=engine)
    monkeypatch.setattr(implementation, "try_all", full)  # after modules that planning imports, which keep it
    with pytest.raises(dnn.OutOfMemory):
        dnn.primitive_desc(dnn.MatMul(a, b, c), engine=engine)


def bare_allocations(tree: ast.AST) -> Iterator[int]:
    """Lines where arrays are made outside of `allocated`, of `within_memory` and of a try that expects MemoryError."""
    if isinstance(tree, ast.FunctionDef) and any("within_memory" in ast.unparse(each) for each in tree.decorator_list):
        return
    if isinstance(tree, ast.Try) and "MemoryError" in [ast.unparse(each.type) for each in tree.handlers if each.type]:
        return
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute):
        is_numpy = isinstance(tree.func.value, ast.Name) and tree.func.value.id == "np"
        if tree.func.attr in (MAKERS if is_numpy else METHODS):
            yield tree.lineno
    for child in ast.iter_child_nodes(tree):
        yield from bare_allocations(child)


def test_no_array_is_made_elsewhere() -> None:
    found = {}
    for path in sorted({path for pattern in WATCHED for path in PACKAGE.glob(pattern)}):
        if lines := list(bare_allocations(ast.parse(path.read_text()))):
            found[str(path.relative_to(ROOT))] = lines
    assert found.keys() - SMALL.keys() == set(), found
    assert SMALL.keys() - found.keys() == set()


def test_the_search_finds_them() -> None:
    assert list(bare_allocations(ast.parse("x = np.empty(3)\ny = x.copy()\nz = allocated(np.empty, 3)"))) == [1, 2]
