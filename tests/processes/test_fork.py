"""Forks of a process whose other threads work: no lock is left held, so no child ever waits for a thread it lacks."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.python import python

ROOT = Path(__file__).parents[2]
# What runs in a user's process; the other packages are the command's and the tests'.
LIBRARY = ("memory", "jit", "isa", "generators", "runtime", "primitives", "dump", "planning")
# Classes and modules of the standard library that hold a lock which a fork()ed child does not renew.
HOLDERS = {"cached_property", "tempfile", "queue"}
LOCKS = {"Lock", "RLock", "Condition", "Event", "Semaphore", "BoundedSemaphore", "Barrier"}  # of threading

STRESS = """
import os, signal, threading, time
import numpy as np
import asmdnn as dnn

ENGINE = dnn.Engine(isa="avx2", threads=2)

def create(rows, columns):
    tensors = {"src": (rows, 16), "weights": (16, columns), "dst": (rows, columns)}
    descs = {name: dnn.MemoryDesc(dims, dnn.f32, "ab") for name, dims in tensors.items()}
    primitive = dnn.Primitive(dnn.primitive_desc(dnn.MatMul(**descs), dnn.Attr(), ENGINE))
    memories = {name: dnn.Memory(desc) for name, desc in descs.items()}
    memories["src"].array[:], memories["weights"].array[:] = 1, 1
    primitive.execute(**memories)
    assert (memories["dst"].array == 16).all()

def work(first):
    columns = first
    while not done:
        create(3 + columns % 50, columns)
        columns += 3

done = []
workers = [threading.Thread(target=work, args=(first,)) for first in (1, 2, 3)]
for worker in workers:
    worker.start()
statuses = []
for turn in range(FORKS):
    time.sleep(0.003)
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a child that hangs dies by it
        try:
            create(2, 7 + turn)
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
done.append(True)
for worker in workers:
    worker.join()
print(sum(statuses), len(statuses))
"""

LATE_IMPORTS = """
import sys
import asmdnn as dnn
from asmdnn import forking
names = []
def hook(event, arguments):
    if event == "import" and not forking._gate._is_owned():
        names.append(arguments[0])
sys.addaudithook(hook)
import numpy as np
a = np.ones((1, 20, 9, 7), np.float32)
w = np.ones((17, 20, 3, 3), np.float32)
dnn.ops.conv2d(a, w, post_ops=[dnn.Eltwise("gelu_tanh"), dnn.PostOp(lambda x: dnn.exp(x) * 2)])
dnn.ops.matmul(w, w.transpose(0, 1, 3, 2))
dnn.sgemm("N", "T", 2.0, w[0, 0], w[0, 1], 0.5, np.zeros((3, 3), np.float32))
u8 = dnn.MemoryDesc((2, 12, 5, 5), dnn.u8, "nhwc")
dnn.Primitive(dnn.primitive_desc(dnn.Shuffle(u8, u8, 1, 4)))
pd = dnn.primitive_desc(dnn.Reorder(u8, dnn.MemoryDesc((2, 12, 5, 5), dnn.s8, "nchw")))
pd.plan.check()
print(dnn.write_pack("x.pack", [pd]).plans)
dnn.load_pack("x.pack")
from asmdnn.show import text
print([name for name in names if name.split(".")[0] in ("asmdnn", "peachpy", "six", "json")])
"""


def printed(script: str, directory: Path) -> str:
    """By a new process, with a cache of its own."""
    return python(script, PYTHONWARNINGS="ignore", ASMDNN_CACHE_DIR=str(directory / "cache"))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("forks", [30, pytest.param(400, marks=pytest.mark.slow)])
def test_forks_while_threads_create_primitives(forks: int, tmp_path: Path) -> None:
    assert printed(STRESS.replace("FORKS", str(forks)), tmp_path) == f"0 {forks}"


def test_a_fork_waits_for_a_late_import(tmp_path: Path) -> None:
    """Without `importing()` the child waits for a thread that it does not have."""
    (tmp_path / "slow_module.py").write_text("import time\ntime.sleep(0.5)\nVALUE = 1\n")
    script = """
import os, signal, sys, threading, time
sys.path.insert(0, "")
from asmdnn.forking import importing
def load():
    with importing():
        import slow_module
        return slow_module.VALUE
thread = threading.Thread(target=load)
thread.start()
time.sleep(0.1)
child = os.fork()
if child == 0:
    signal.alarm(20)
    os._exit(load())
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
thread.join()
"""
    assert printed(script, tmp_path) == "1"


@pytest.mark.isa("avx2")
def test_what_is_imported_late_is_imported_under_the_gate(tmp_path: Path) -> None:
    plans, ungated = printed(LATE_IMPORTS, tmp_path).splitlines()[-2:]
    assert (plans, ungated) == ("1", "[]")


def sources() -> list[Path]:
    """The library's files."""
    package = ROOT / "asmdnn"
    return sorted([*package.glob("*.py"), *(path for name in LIBRARY for path in (package / name).rglob("*.py"))])


def complaints(source: str) -> Iterator[str]:
    """What a fork could leave held, by line."""
    tree = ast.parse(source)
    handled = "register_at_fork" in source
    for node in ast.walk(tree):
        names = {alias.name for alias in node.names} if isinstance(node, ast.Import | ast.ImportFrom) else set()
        if isinstance(node, ast.ImportFrom):
            names.add(str(node.module))
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        for found in sorted((names | {name}) & HOLDERS):
            yield f"line {getattr(node, 'lineno', 0)}: {found} has a lock that a fork can leave held"
        if name in LOCKS and ast.unparse(node) == f"threading.{name}" and not handled:
            yield f"line {getattr(node, 'lineno', 0)}: {name} without os.register_at_fork"
        if isinstance(node, ast.ImportFrom) and node.module == "threading":
            yield f"line {node.lineno}: import threading as a whole, so that its locks are seen"
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            yield from (f"line {line}: an import outside `with importing()`" for line in ungated(function.body))


def ungated(body: list[ast.stmt]) -> Iterator[int]:
    """Lines of import statements that no `with importing()` encloses."""
    for statement in body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield statement.lineno
        elif not (isinstance(statement, ast.With) and "importing()" in ast.unparse(statement.items[0])):
            for field in ("body", "orelse", "finalbody"):
                yield from ungated(getattr(statement, field, []))
            for handler in getattr(statement, "handlers", []):
                yield from ungated(handler.body)


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_lock_that_a_fork_can_leave_held(path: Path) -> None:
    assert list(complaints(path.read_text())) == []


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("from functools import cached_property", "cached_property has a lock"),
        ("import functools\nclass A:\n    @functools.cached_property\n    def f(self): ...", "cached_property"),
        ("import threading\nlock = threading.Lock()", "Lock without os.register_at_fork"),
        ("def f():\n    import json", "outside `with importing()`"),
        ("import tempfile", "tempfile has a lock"),
    ],
)
def test_the_test_sees(source: str, what: str) -> None:
    assert what in next(complaints(source))
