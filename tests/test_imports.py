"""Who may import whom, read from the sources; and what importing the package must not do."""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from asmdnn import ops
from tests.support.python import python

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "asmdnn"

# A unit is a module or package directly in asmdnn; "" is the package itself, which only the outside imports.
MAY_IMPORT = {
    "errors": set(),
    "exact": set(),
    "collecting": set(),
    "records": set(),
    "forests": set(),
    "files": {"environment"},
    "forking": set(),
    "types": set(),
    "version": set(),
    "environment": set(),
    "notebook": set(),
    "verbose": {"environment"},
    "memory": {"types"},
    "definitions": {"forests"},
    "show": {"types", "memory", "isa", "primitives"},
    "jit": {"types", "environment", "verbose"},
    "isa": {"types", "jit"},
    "generators": {"types", "isa"},
    "corpus": {"types", "isa", "generators"},
    "dump": {"types", "jit", "isa", "generators"},
    "proof": {"isa", "generators", "corpus"},
    "emulator": set(),
    "asm": {"isa", "jit", "generators", "dump", "proof", "emulator", "explain", "analyze"},
    "ukernel": {"types", "memory", "isa", "generators", "planning", "primitives", "asm"},
    "planning": {"types", "environment", "memory", "isa", "jit", "generators"},
    "runtime": {"types", "environment", "memory", "isa", "jit", "generators", "planning", "dump"},
    "primitives": {
        "types", "environment", "memory", "isa", "jit", "generators", "planning", "runtime", "version", "verbose",
        "forests",
    },
    "explain": {"types", "memory", "isa", "jit", "generators", "planning", "runtime", "primitives"},
    "analyze": {"types", "memory", "isa", "jit", "generators", "planning", "runtime", "primitives", "explain"},
    "bench": {
        "", "types", "environment", "definitions", "memory", "isa", "planning", "runtime", "primitives", "forests",
        "analyze",
    },
    "setup": {"isa"},
    "ops": {"types", "memory", "jit", "runtime", "primitives"},
    "network": {
        "types", "definitions", "version", "environment", "dump", "explain", "memory", "isa", "jit", "generators",
        "planning", "runtime", "primitives", "recurrent", "optim", "forests",
    },
    "export": {
        "version", "dump", "memory", "isa", "jit", "generators", "planning", "runtime", "primitives", "network",
        "types",
    },
    "optim": set(),
    "losses": {"network"},
    "aten": {"network", "primitives", "recurrent"},
    "recurrent": {"memory"},
    "torch": {"ops"},
    "blas": {"types", "memory", "isa", "jit", "primitives", "ops"},
    "memory_use": {"jit", "planning", "runtime", "primitives", "ops"},
    "cli": {
        "", "types", "environment", "memory", "network", "isa", "jit", "generators", "corpus", "dump", "proof",
        "planning", "runtime", "bench", "show", "primitives", "explain", "export", "analyze", "setup",
    },
    "__main__": {"cli"},
    "api": {
        "aten", "export", "types", "memory", "isa", "planning", "primitives", "ops", "optim", "losses", "blas",
        "network", "recurrent", "show", "memory_use",
    },
    "": {"version", "api"},
}  # fmt: skip
ONLY_FOR = {  # of a package that may be imported, the modules that may import it
    ("isa", "jit"): {"asmdnn.isa.cpuid"},
    ("cli", "generators"): {"asmdnn.cli.dump_plan"},  # for the contract
    ("asm", "explain"): {"asmdnn.asm.ports"},  # for loops
    ("asm", "analyze"): {"asmdnn.asm.ports"},  # for llvm-mca
    ("bench", "analyze"): {"asmdnn.bench.case"},  # for what plans multiply with
    ("asm", "generators"): {"asmdnn.asm.proof", "asmdnn.asm.files"},  # for the contract
}
BUILT_ON = {"emulator": "iced_x86"}  # who imports such a unit does it where it is used
EVERYWHERE = {"collecting", "errors", "exact", "files", "forking", "notebook", "records"}
# Generators see no arrays, no files, no machine.
PURE = {
    "bisect", "collections", "contextlib", "dataclasses", "enum", "functools", "itertools", "math", "struct", "typing",
    "zlib",
}  # fmt: skip
DEPENDENCIES = {"numpy", "_cffi_backend", "cffi"}
OPTIONAL = {
    "cpuinfo",
    "scipy",
    "matplotlib",
    "PIL",
    "iced_x86",
    "onnxruntime",
    "openvino",
    "torch",
    "ml_dtypes",
}  # inside functions


class Import:
    """One imported module, absolute, and whether importing the file imports it."""

    def __init__(self, module: str, at_import: bool, line: int) -> None:
        self.module, self.at_import, self.line = module, at_import, line


@cache
def imports_of(source: str, module: str, is_package: bool) -> tuple[Import, ...]:
    return tuple(found_imports(source, module, is_package))


def found_imports(source: str, module: str, is_package: bool) -> Iterator[Import]:
    """Also `importlib.import_module("...")` and `__import__("...")` of a literal name."""
    waiting: list[tuple[ast.AST, bool]] = [(ast.parse(source), True)]
    while waiting:
        node, at_import = waiting.pop()
        inside = at_import and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        waiting += [(child, inside) for child in ast.iter_child_nodes(node)]
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, at_import, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                base = ".".join([*parts[: len(parts) - node.level + is_package], *filter(None, [node.module])])
            for alias in node.names:  # `from asmdnn import ops` is the module asmdnn.ops
                full = f"{base}.{alias.name}"
                yield Import(full if is_module(full) else base, at_import, node.lineno)
        elif isinstance(node, ast.Call) and node.args:
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            name = first_text(node.args[0])
            if called in ("import_module", "__import__") and name:
                yield Import(name, at_import, node.lineno)


def first_text(node: ast.expr) -> str:
    """A literal, or the literal that an f-string starts with."""
    if isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]
    return str(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


@cache
def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return name.startswith("asmdnn.") and (path.with_suffix(".py").exists() or (path / "__init__.py").exists())


def complaints(source: str, module: str, is_package: bool = False) -> list[str]:
    """What the imports of a module break, a sentence each."""
    unit = module.split(".")[1] if "." in module else ""
    found = []
    for imported in imports_of(source, module, is_package):
        top, _, rest = imported.module.partition(".")
        where = f"{module}:{imported.line} imports {imported.module}"
        if top == "asmdnn":
            other = rest.split(".")[0]
            allowed = MAY_IMPORT[unit] | EVERYWHERE | {unit} - {""}
            if other not in allowed:
                found.append(f"{where}: {unit or top} may not use {other or 'the public API'}")
            elif (unit, other) in ONLY_FOR and module not in ONLY_FOR[unit, other]:
                found.append(f"{where}: only {', '.join(ONLY_FOR[unit, other])} may")
        elif top == "peachpy":
            if unit != "isa" or imported.at_import:
                found.append(f"{where}: only asmdnn.isa does, and not when it is imported")
        elif unit == "generators" and top not in PURE:
            found.append(f"{where}: generators depend on nothing but their spec")
        elif top in OPTIONAL and imported.at_import and BUILT_ON.get(unit) != top:
            found.append(f"{where}: optional packages are imported where they are used")
        elif top not in sys.stdlib_module_names | DEPENDENCIES | OPTIONAL | {"six"}:
            found.append(f"{where}: not a dependency")
    return found


@cache
def graph_of_modules() -> dict[str, frozenset[str]]:
    """What each module imports, at import or inside functions or for types only."""
    return {
        name: frozenset(each.module for each in imports_of(path.read_text(), name, path.name == "__init__.py"))
        for name, path in modules()
    }


@cache
def modules() -> list[tuple[str, Path]]:
    paths = sorted(PACKAGE.rglob("*.py"))
    return [(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"), path) for path in paths]


def test_every_unit_has_rules() -> None:
    units = {name.split(".")[1] if "." in name else "" for name, _ in modules()}
    assert units == set(MAY_IMPORT)


@pytest.mark.parametrize(("module", "path"), modules(), ids=[name for name, _ in modules()])
def test_the_table_holds(module: str, path: Path) -> None:
    assert complaints(path.read_text(), module, path.name == "__init__.py") == []


@pytest.mark.parametrize("module", [name for name, _ in modules() if name.startswith("asmdnn.generators")])
def test_generators_open_nothing(module: str) -> None:
    tree = ast.parse(dict(modules())[module].read_text())
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert not names & {"open", "exec", "eval", "__import__", "print", "input", "globals"}


@pytest.mark.parametrize(
    ("module", "source", "what"),
    [
        ("asmdnn.types", "import asmdnn.memory", "types may not use memory"),
        ("asmdnn.errors", "from asmdnn.types import f32", "errors may not use types"),
        ("asmdnn.memory.desc", "from asmdnn.isa.cpu import x", "memory may not use isa"),
        ("asmdnn.memory.desc", "from ..runtime import plan", "memory may not use runtime"),
        ("asmdnn.isa.vector", "def f():\n    from asmdnn.jit.native import ffi", "only asmdnn.isa.cpuid may"),
        ("asmdnn.isa.vector", "import peachpy.x86_64", "not when it is imported"),
        ("asmdnn.isa.vector", "class A:\n    from peachpy import x", "not when it is imported"),
        ("asmdnn.isa.vector", "import importlib\nx = importlib.import_module('peachpy')", "not when it is imported"),
        ("asmdnn.generators.dot.conv", "def f():\n    import peachpy", "only asmdnn.isa does"),
        ("asmdnn.generators.dot.conv", "import numpy as np", "generators depend on nothing"),
        ("asmdnn.generators.dot.conv", "def f():\n    import os", "generators depend on nothing"),
        ("asmdnn.generators.dot.conv", "from asmdnn.memory import MemoryDesc", "generators may not use memory"),
        ("asmdnn.jit.store", "from asmdnn.runtime import plan", "jit may not use runtime"),
        ("asmdnn.runtime.threads", "from asmdnn import ops", "runtime may not use ops"),
        ("asmdnn.runtime.threads", "import asmdnn", "runtime may not use the public API"),
        ("asmdnn.primitives.attributes.attr", "from asmdnn.cli import bench", "primitives may not use cli"),
        ("asmdnn.planning.plan", "from asmdnn.runtime import execution", "planning may not use runtime"),
        ("asmdnn.generators.executor", "from asmdnn.planning import plan", "generators may not use planning"),
        ("asmdnn.ops", "from asmdnn.planning.plan import Plan", "ops may not use planning"),
        ("asmdnn.cli.info", "from asmdnn.generators.dot.conv import x", "only asmdnn.cli.dump_plan may"),
        ("asmdnn", "from asmdnn.runtime.execution import Program", "asmdnn may not use runtime"),
        ("asmdnn.cli.info", "import cpuinfo", "optional packages"),
        ("asmdnn.cli.info", "import requests", "not a dependency"),
    ],
)  # fmt: skip
def test_the_test_sees(module: str, source: str, what: str) -> None:
    (complaint,) = complaints(source, module)
    assert what in complaint


def test_what_is_allowed_is_not_complained_about() -> None:
    assert complaints("def f():\n    import peachpy.x86_64", "asmdnn.isa.encoder") == []
    assert complaints("from asmdnn.jit.native import ffi", "asmdnn.isa.cpuid") == []
    assert complaints("from asmdnn.errors import InvalidArguments", "asmdnn.types") == []
    assert complaints("from . import plan\nfrom .plan import Plan", "asmdnn.planning.check") == []


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Modules that import one another, be it in steps."""

    def reached(start: str) -> set[str]:
        found, waiting = set[str](), [start]
        while waiting:
            more = graph[waiting.pop()] - found
            found |= more
            waiting += more
        return found

    behind = {module: reached(module) for module in graph}
    rings = {frozenset(other for other in behind[module] if module in behind[other]) for module in graph}
    return sorted(sorted(ring) for ring in rings if ring)


def test_no_module_imports_itself_in_steps() -> None:
    """Neither when it is imported nor inside functions or for types only, also not within a package."""
    graph = graph_of_modules()
    assert circles({module: {*others} & graph.keys() for module, others in graph.items()}) == []


def test_no_folder_imports_itself_in_steps() -> None:
    """A package's own files are the ground that its folders share; the folders stand on one another in an order."""
    graph: dict[str, set[str]] = {}
    for name, path in modules():
        folder = folder_of(name if path.name == "__init__.py" else name.rpartition(".")[0])
        graph.setdefault(folder, set()).update(folder_of(each.rpartition(".")[0]) for each in graph_of_modules()[name])
    graph.pop("")
    assert circles({folder: others - {"", folder} for folder, others in graph.items()}) == []


def folder_of(package: str) -> str:
    """ "primitives.pooling" of what it has or lies deeper; "" of the package primitives."""
    return ".".join(package.split(".")[1:3]) if package.count(".") > 1 else ""


def test_circles_are_seen() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": {"e"}}) == [["a", "b", "c"], ["e"]]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_importing_does_nothing() -> None:
    """No PeachPy, no C parser, no brand string, no CPUID, no code, no OpenMP, no threads, no files."""
    script = """
import os, sys, threading
from asmdnn.jit import executable
made = []
executable.ExecutableMemory.__init__ = lambda self, codes: made.append(codes)
opened = []
sys.addaudithook(lambda event, args: opened.append(args[0]) if event == "open" and "w" in str(args[1]) else None)
import asmdnn
from asmdnn.isa import cpu
from asmdnn.planning import host
from asmdnn.runtime import execution
unwanted = {"peachpy", "six", "pycparser", "cffi", "cpuinfo", "scipy", "argparse", "multiprocessing"}
print(sorted(unwanted & {name.split(".")[0] for name in sys.modules}))
print(made, opened, threading.active_count(), execution.kernel_cache.cache_info().currsize)
print(*(asked.cache_info().currsize for asked in (cpu.cpu_features, cpu.cache_sizes, cpu.signature, host.detected)))
print([line for line in open("/proc/self/maps") if "libgomp" in line])
"""
    unwanted, work, detection, openmp = python(script).splitlines()
    assert unwanted == "[]"
    assert work == "[] [] 1 0"
    assert detection == "0 0 0 0"
    assert openmp == "[]"


@pytest.mark.parametrize(
    "script",
    [
        "import asmdnn; asmdnn.__version__; asmdnn.errors; asmdnn.types.f32",
        "from asmdnn.cli.main import main; main(['--help'])",
        "from asmdnn.cli.main import main; main(['-V'])",
        "from asmdnn.cli.main import main; main(['setup', '--help'])",
        "import asmdnn.setup.debian",
    ],
)
def test_what_needs_neither_numpy_nor_cffi(script: str) -> None:
    loaded = python(f"import sys; {script}; print(sorted({{'numpy', '_cffi_backend'}} & set(sys.modules)))")
    assert loaded.splitlines()[-1] == "[]"


def test_the_api_is_plain_attributes_once_a_name_was_used() -> None:
    script = """
import asmdnn
assert "Memory" not in vars(asmdnn)
assert "Memory" in dir(asmdnn)
assert asmdnn.Memory is vars(asmdnn)["Memory"]
for name in ("nonsense", "_nonsense", "__nonsense__", "not an identifier"):
    assert not hasattr(asmdnn, name)
print(sorted({*asmdnn.api.__all__, "__version__"}) == sorted(asmdnn.__all__))
"""
    assert python(script) == "True"


def test_planning_needs_neither_peachpy_nor_openmp() -> None:
    script = """
import sys, asmdnn as dnn
from asmdnn.runtime import execution
d = lambda dims: dnn.MemoryDesc(dims, dnn.f32, "any")
desc = dnn.ConvolutionForward(d((1, 8, 4, 4)), d((8, 8, 1, 1)), d((1, 8, 4, 4)))
pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa="avx512_core", threads=1, machine="zen3"))
pd.plan.check()
print(pd.implementation, "peachpy" in sys.modules, execution.kernel_cache.cache_info().currsize)
print([line for line in open("/proc/self/maps") if "libgomp" in line])
"""
    assert python(script).splitlines() == ["direct:avx512_core False 0", "[]"]


def test_the_public_names_exist() -> None:
    script = """
import asmdnn
assert sorted(asmdnn.__all__) == sorted(set(asmdnn.__all__)), "twice"
for name in asmdnn.__all__:
    assert getattr(asmdnn, name) is not None
from asmdnn import *
print(conv2d if "conv2d" in globals() else "no conv2d", MemoryDesc.__name__)
"""
    assert python(script) == "no conv2d MemoryDesc"


def test_operations_come_from_where_they_are_said_to() -> None:
    """Once for type checkers and once for what is run; and no module hides an operation after its own name."""
    stated = ast.parse((PACKAGE / "ops" / "__init__.py").read_text())
    (checked,) = (node for node in stated.body if isinstance(node, ast.If))  # if TYPE_CHECKING
    imports = [node for node in ast.walk(checked) if isinstance(node, ast.ImportFrom) and node.level == 0]
    for_types = {
        alias.name: (node.module or "").removeprefix("asmdnn.ops.")
        for node in imports
        for alias in node.names
        if (node.module or "").startswith("asmdnn.ops.")
    }
    assert for_types == ops.PLACES
    for name in ops.__all__:
        function = getattr(ops, name).__wrapped__  # what `ops.kinds` calls
        assert (function.__name__, function.__module__) == (name, f"asmdnn.ops.{ops.PLACES[name]}")
    assert not {path.stem for path in (PACKAGE / "ops").glob("*.py")} & ops.PLACES.keys()
    with pytest.raises(AttributeError, match=r"asmdnn\.ops.*conv4d"):
        ops.conv4d  # noqa: B018


FIRST_PRODUCT = """
import sys
from asmdnn import ops
import numpy as np
ops.matmul(np.ones((4, 4), np.float32), np.ones((4, 4), np.float32))
"""


def test_a_product_imports_no_other_kinds() -> None:
    script = """
print(sorted({name.split(".")[2] for name in sys.modules if name.startswith("asmdnn.primitives.")}))
"""
    others = {"convolution", "recurrent", "pooling", "normalization", "softmax", "attention", "resampling", "shuffle"}
    others |= {"inner_product", "quantized", "elementwise"}
    assert not others & set(ast.literal_eval(python(FIRST_PRODUCT + script)))


def test_a_product_imports_few_modules() -> None:
    """A module takes some 0.5 ms of a CPU, half of it for its data classes; there are more than 1,100."""
    script = "print(sum(name.startswith('asmdnn') for name in sys.modules))"
    assert int(python(FIRST_PRODUCT + script)) <= 225
