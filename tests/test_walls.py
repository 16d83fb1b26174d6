"""What the code keeps to: lines of a file and of a function, parameters, and one name for one class."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from asmdnn.isa.levels import LEVELS
from tests.test_imports import PACKAGE, ROOT

MOST_LINES, MOST_FUNCTION_LINES, MOST_PARAMETERS = 300, 50, 7
Function = ast.FunctionDef | ast.AsyncFunctionDef

# Interfaces that somebody else has set; all else groups what belongs together in a value.
SET_BY_OTHERS = {
    "asmdnn/isa/encoding.py": {"evex"},  # PeachPy's encoders call it so
    "asmdnn/blas/single.py": {"sgemm"},  # the BLAS
    "asmdnn/blas/typed.py": {"gemm_bf16bf16f32", "gemm_f16f16f32", "gemm_x8x8s32"},  # MKL
    "asmdnn/primitives/attributes/attr.py": {"__init__"},  # oneDNN's attributes
    "asmdnn/torch/images.py": {f"conv_transpose{axes}d" for axes in (1, 2, 3)},  # torch's functions
    "asmdnn/torch/channels.py": {"batch_norm"},
}
# Functions on arrays have keyword-only options, as those of numpy and torch, and so has what loads files.
OPTIONS = (
    "asmdnn/ops/", "asmdnn/network/loading.py", "asmdnn/network/building.py", "asmdnn/network/learning.py",
    "asmdnn/network/quantization.py", "asmdnn/ukernel/",
)  # fmt: skip

# Constants of the machine and of types, and the one file that has each.
DEFINED_IN = {
    "LINE_BYTES": "asmdnn/isa/lines.py", "MAX_OFFSET": "asmdnn/isa/lines.py", "F32_BYTES": "asmdnn/types.py",
    "MOST_CYCLES": "asmdnn/planning/phase.py",
}  # fmt: skip

MOST_POSITIONS = 6  # of arguments in a call
LONG_LINE = 60  # characters of a script: shorter lines may be alike
# Callees that take any number of arguments, or a key of a cache, which names in a call would be a part of.
ANY_NUMBER = {
    "zip", "partial", "pack", "pack_into", "free", "one_of", "_one", "say", "describe", "AddressForm", "rule",
}  # fmt: skip

NAMED_LEVELS = {isa.name.upper() for isa in LEVELS}

FILES = sorted(PACKAGE.rglob("*.py"))


@dataclass(frozen=True)
class Facts:
    """What a file's walls ask of it.  Trees of all files would fill the memory, and walking each anew takes long.

    functions: name, line, lines, its parameters and those that are not keyword-only, whether it is an operator of ATen;
    constants: of DEFINED_IN, that it sets; long_calls: line and callee; tables: of levels, their lines; named_levels:
    lines.
    """

    functions: tuple[tuple[str, int, int, int, int, bool], ...]
    classes: frozenset[str]
    constants: frozenset[str]
    long_calls: tuple[tuple[int, str], ...]
    tables: tuple[int, ...]
    named_levels: tuple[int, ...]
    names_bf16: bool


def facts_of(source: str) -> Facts:
    nodes = list(ast.walk(ast.parse(source)))
    functions = [node for node in nodes if isinstance(node, Function)]
    names = [node for node in nodes if isinstance(node, ast.Name)]
    calls = [node for node in nodes if isinstance(node, ast.Call) and len(node.args) > MOST_POSITIONS]
    callees = [(node.lineno, ast.unparse(node.func).rpartition(".")[2]) for node in calls]
    return Facts(
        tuple(
            (f.name, f.lineno, (f.end_lineno or 0) - f.lineno, parameters(f, True), parameters(f, False), is_rule(f))
            for f in functions
        ),
        frozenset(node.name for node in nodes if isinstance(node, ast.ClassDef)),
        frozenset(node.id for node in names if isinstance(node.ctx, ast.Store) and node.id in DEFINED_IN),
        tuple(each for each in callees if each[1] not in ANY_NUMBER),
        tuple(levels_in(nodes)),
        tuple(node.lineno for node in nodes if isinstance(node, ast.Attribute) and is_level(node)),
        names_bf16(nodes),
    )


@cache
def facts(path: Path) -> Facts:
    return facts_of(path.read_text())


def parameters(function: Function, keywords: bool) -> int:
    """How many, but for self; the keyword-only ones if they count."""
    given = [*function.args.posonlyargs, *function.args.args]
    own = given[1:] if given and given[0].arg in ("self", "cls") else given
    return len(own) + len(function.args.kwonlyargs) * keywords


def is_rule(function: Function) -> bool:
    """Whether its parameters are those of an operator of ATen."""
    return any(ast.unparse(decorator).startswith("rule(") for decorator in function.decorator_list)


def is_level(node: ast.Attribute) -> bool:
    """AVX2.name, for example."""
    return node.attr == "name" and isinstance(node.value, ast.Name) and node.value.id in NAMED_LEVELS


def levels_in(nodes: Sequence[ast.AST]) -> list[int]:
    """Lines of tables with a key for each of several ISA levels, by name."""
    names = {level.name for level in LEVELS}
    tables = [node for node in nodes if isinstance(node, ast.Dict)]
    keys = [(x.lineno, [key.value for key in x.keys if isinstance(key, ast.Constant)]) for x in tables]
    return [line for line, given in keys if len(names.intersection(given)) > 1]


def names_bf16(nodes: Sequence[ast.AST]) -> bool:
    """As a name, or as a whole text."""
    words = {"bf16", "bfloat16"}
    return any(
        str(getattr(node, "id", getattr(node, "attr", getattr(node, "value", "")))).lower() in words
        for node in nodes
        if isinstance(node, ast.Name | ast.Attribute | ast.Constant)
    )


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_files() -> None:
    long = {str(path): lines for path in FILES if (lines := len(path.read_text().splitlines())) > MOST_LINES}
    assert not long, "what second thing does the file do?"


def test_functions() -> None:
    found = [(path, function) for path in FILES for function in facts(path).functions]
    long = {f"{path}:{line}": name for path, (name, line, lines, *_) in found if lines >= MOST_FUNCTION_LINES}
    assert not long


def test_parameters() -> None:
    many = set()
    for path in FILES:
        for name, _, _, every, positional, rule in facts(path).functions:
            public = named(path).startswith(OPTIONS) and not name.startswith("_")
            if not rule and (positional if public else every) > MOST_PARAMETERS:
                many.add((named(path), name))
    assert many == {(name, function) for name, found in SET_BY_OTHERS.items() for function in found}


@pytest.mark.parametrize(
    ("source", "count"), [("def f(self, a, b, *, c): ...", 3), ("def f(a, /, b, *more): ...", 2), ("def f(): ...", 0)]
)
def test_parameters_are_counted(source: str, count: int) -> None:
    ((_, line, lines, every, positional, rule),) = facts_of(source).functions
    assert (every, positional) == (count, count - source.count(", *, "))
    assert (line, lines, rule) == (1, 0, False)


def test_a_class_name_means_one_class() -> None:
    found = defaultdict(set)
    for path in FILES:
        for name in facts(path).classes:
            found[name].add(named(path))
    twice = {name: paths for name, paths in found.items() if len(paths) > 1}
    assert not twice, "a reader of one room meets it in another: give one a name of its own"


def test_constants_of_the_machine_stand_in_one_place() -> None:
    found = {(name, named(path)) for path in FILES for name in facts(path).constants}
    assert found == {*DEFINED_IN.items()}


def planners_and_generators(*more: str) -> list[Path]:
    return [path for room in ("generators", "primitives", *more) for path in sorted((PACKAGE / room).rglob("*.py"))]


def test_no_table_is_keyed_by_names_of_levels() -> None:
    """What differs stands beside the vector or the dot, or is a number of its registers or bytes."""
    assert not [(named(path), lines) for path in planners_and_generators("corpus") if (lines := facts(path).tables)]
    assert facts_of("A = {'avx2': 1}\nB = {'avx2': 16, 'avx512_core': 32}\n").tables == (2,)


def test_no_planner_names_a_level_for_its_kernels() -> None:
    """Levels come from the engine, or from f32_widths and NARROWEST, which say when."""
    assert not [(named(path), lines) for path in planners_and_generators() if (lines := facts(path).named_levels)]
    assert facts_of("a = AVX2.rank\nb = AVX2.name\n").named_levels == (2,)


def test_calls_name_what_they_pass() -> None:
    """A reader counts to six at most."""
    found = [f"{path}:{line}: {callee}" for path in FILES for line, callee in facts(path).long_calls]
    assert not found, "\n".join(found)


def positional_specs(source: str) -> list[str]:
    """Those whose fields are given by place."""
    classes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef) and node.decorator_list]
    made = [(each.name, ast.unparse(each.decorator_list[0])) for each in classes if each.name.endswith("Spec")]
    return [name for name, decorator in made if "dataclass" in decorator and "kw_only=True" not in decorator]


def test_fields_of_specs_have_names_where_they_are_made() -> None:
    """Numbers that stand side by side say which is which."""
    assert not [(named(path), specs) for path in FILES if (specs := positional_specs(path.read_text()))]
    assert positional_specs("@dataclass(frozen=True)\nclass ASpec: ...\n") == ["ASpec"]
    assert not positional_specs("@dataclass(kw_only=True)\nclass ASpec: ...\n@dataclass\nclass A: ...\n")


# Who names bf16 in code: the type itself, a format that rounds to it, what CPUs do with it, modes of that name, and
# files of others that have it.
NAMES_BF16 = {
    "api.py", "types.py",
    "isa/dot.py", "isa/dot_base.py", "isa/elements.py",
    "blas/typed.py", "primitives/core/widening.py", "primitives/reorder/fpmath.py",
    "definitions/rounding.py", "network/element_types.py",
}  # fmt: skip


def test_scripts_say_nothing_twice() -> None:
    """A replacement in text with $ in it may paste what follows into the middle, where it still runs."""
    for path in PACKAGE.rglob("*.js"):
        lines = [line.strip() for line in path.read_text().splitlines() if len(line.strip()) >= LONG_LINE]
        assert lines, path
        assert not [line for line, count in Counter(lines).items() if count > 1], path


def test_few_files_name_bf16() -> None:
    """Elsewhere a type is a value: what is asked of it is FLOATS, HALF_FLOATS, its element or its dot."""
    named_in = {path.relative_to(PACKAGE) for path in FILES if facts(path).names_bf16}
    assert {str(path) for path in named_in if path.parts[0] not in ("corpus", "bench")} == NAMES_BF16


def test_bf16_is_seen() -> None:
    assert all(facts_of(source).names_bf16 for source in ("x = bf16", "x = dnn.BF16", "x = {'bfloat16': 1}"))
    assert not facts_of('"""Of bf16."""\nx = "pairs of bf16"\ny = numbers.bf16_cycles').names_bf16


def test_nobody_is_told_to_install_a_name_that_is_not_the_projects() -> None:
    """The package index has no asmdnn: extras are those of a clone, `.[demo]`."""
    assert not [str(path) for path in FILES if "asmdnn[" in path.read_text() and "pip install" in path.read_text()]


def drawn_out_of_order(source: str) -> set[str]:
    """Generators of random numbers that what is called later shares: what each gets depends on who came before."""
    module = ast.parse(source)
    at_import = [node for node in module.body if not isinstance(node, Function | ast.ClassDef)]
    made = {
        target.id
        for node in at_import
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
        if isinstance(target, ast.Name) and ast.unparse(node.value.func).endswith(("default_rng", "Random"))
    }
    names = {id(node): {x.id for x in ast.walk(node) if isinstance(x, ast.Name)} for node in module.body}
    later = {name for node in module.body if node not in at_import for name in names[id(node)]}
    return made & later | {"RANDOM" for node in at_import if "RANDOM" in names[id(node)] - made}


def test_data_do_not_depend_on_the_order_of_tests() -> None:
    """Generators are those of a function, or that of tests/support/drawing.py, which every test finds as it was."""
    assert drawn_out_of_order("R = np.random.default_rng(1)\ndef f(): R.random()") == {"R"}
    assert drawn_out_of_order("from x import RANDOM\nX = RANDOM.random()") == {"RANDOM"}
    assert not drawn_out_of_order("R = np.random.default_rng(1)\nX = R.random()\ndef f(): return X")
    sources = {path: path.read_text() for path in (ROOT / "tests").rglob("*.py") if path.name != "drawing.py"}
    drawing = {path: text for path, text in sources.items() if re.search(r"default_rng|Random\(|RANDOM", text)}
    assert not [(str(path), names) for path, text in drawing.items() if (names := drawn_out_of_order(text))]
