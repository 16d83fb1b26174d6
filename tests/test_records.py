"""`asmdnn.records.dataclass` beside the standard library's: only time tells apart what they make."""

import ast
import copy
import dataclasses
import inspect
import itertools
import pickle
import re
import threading
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, astuple, field, fields
from pathlib import Path
from typing import Any, ClassVar

import pytest

import asmdnn as dnn
from asmdnn.records import dataclass, replace
from tests.support.together import at_once

PACKAGE = Path(dnn.__file__).parent
Decorator = Callable[..., Any]
OPTIONS = [
    dict(zip(("frozen", "slots", "kw_only", "eq"), values, strict=True))
    for values in itertools.product((False, True), repeat=4)
]


def made(decorator: Decorator, **options: Any) -> Any:
    @decorator(**options)
    class Block:
        """A block."""

        rows: int
        name: str = "tile"
        many: ClassVar[int] = 7
        parts: list[int] = field(default_factory=list)
        hidden: int = field(default=3, repr=False, compare=False)
        later: int = field(default=5, init=False)
        none: tuple[int, ...] = field(default_factory=tuple, init=False)
        last: int = field(default=1, kw_only=True)

    return Block


def outcome(run: Callable[[], Any]) -> Any:
    """What comes of it; of an error its class and text."""
    try:
        return run()
    except Exception as error:
        return type(error), str(error)


def told(cls: Any) -> list[Any]:
    """All that a class says and does, in values that compare between classes of one name."""
    one, same, other = cls(rows=1), cls(rows=1), cls(rows=2, parts=[4], last=9)

    def change(name: str) -> None:
        setattr(one, name, 8)

    return [
        repr(one),
        repr(other),
        cls.__doc__,
        cls.__match_args__,
        getattr(cls, "__slots__", None),
        [(each.name, each.type, each.init, each.repr, each.compare, each.kw_only) for each in fields(cls)],
        str(inspect.signature(cls)),
        (asdict(other), astuple(other)),
        (one == same, one == other, one != same, one == 1, one.__eq__(1)),
        outcome(lambda: hash(one) == hash(same)),
        outcome(lambda: (replace(one, rows=4).rows, replace(one, rows=4).parts is one.parts)),
        outcome(lambda: replace(one, later=4)),
        (copy.copy(other).rows, copy.deepcopy(other).parts, copy.deepcopy(other).parts is other.parts),
        outcome(lambda: cls()),
        outcome(lambda: cls(1, "a", [], 2, 3)),
        outcome(lambda: cls(rows=1, nothing=2)),
        cls(rows=1).parts is not cls(rows=1).parts,
        cls.many,
        outcome(lambda: change("rows")),
        outcome(lambda: delattr(one, "rows")),
        one.rows if hasattr(one, "rows") else None,
    ]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_class_is_as_the_standard_library_makes_it(options: dict[str, bool]) -> None:
    assert told(made(dataclass, **options)) == told(made(dataclasses.dataclass, **options))


@pytest.mark.parametrize("decorator", [dataclass, dataclasses.dataclass])
def test_methods_of_the_class_stay(decorator: Decorator) -> None:
    @decorator(frozen=True, slots=True)
    class Own:
        rows: int

        def __post_init__(self) -> None:
            object.__setattr__(self, "rows", self.rows + 1)

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 4

    assert (Own(1).rows, repr(Own(1)), Own(1) == Own(5), hash(Own(1))) == (2, "own", True, 4)


@pytest.mark.parametrize("slots", [False, True])
def test_a_copy_is_made_as_any_instance(slots: bool) -> None:
    """Slots are copied where that is all that `__init__` does."""

    @dataclass(frozen=True, slots=slots)
    class Plain:
        rows: int
        name: str = field(default="tile", kw_only=True)

    @dataclass(frozen=True, slots=slots)
    class Checked(Plain):
        def __post_init__(self) -> None:
            object.__setattr__(self, "rows", min(self.rows, 9))

    @dataclass(frozen=True, slots=slots)
    class Own(Plain):
        def __init__(self, rows: int, name: str) -> None:
            object.__setattr__(self, "rows", 2 * rows)
            object.__setattr__(self, "name", name)

    @dataclass(frozen=True, slots=slots)
    class Late(Plain):
        twice: int = field(default=7, init=False)

    class Below(Plain):
        pass

    for kind, rows in ((Plain, 30), (Checked, 9), (Own, 60), (Late, 30), (Below, 30)):
        one = kind(3, name="row")
        for copied in (replace(one, rows=30), dataclasses.replace(one, rows=30)):
            assert (type(copied), copied.rows, copied.name, getattr(copied, "twice", 7)) == (kind, rows, "row", 7)
            assert copied == kind(30, name="row") != one
        with pytest.raises(TypeError, match="columns"):
            replace(one, columns=1)


@pytest.mark.parametrize("decorator", [dataclass, dataclasses.dataclass])
def test_an_own_comparison_keeps_the_hash_of_the_fields(decorator: Decorator) -> None:
    """Python sets __hash__ to None where a class has __eq__ alone."""

    @decorator(frozen=True)
    class Own:
        rows: int

        def __eq__(self, other: object) -> bool:
            return True

    assert hash(Own(3)) == hash((3,))


@pytest.mark.parametrize("decorator", [dataclass, dataclasses.dataclass])
def test_derived_classes_and_order(decorator: Decorator) -> None:
    @decorator(frozen=True)
    class Base:
        rows: int

    @decorator(frozen=True, slots=True, order=True)
    class Derived(Base):
        columns: int = 2

    class Plain(Derived):
        pass

    assert Derived(1, 3) < Derived(2, 1) and Derived(1, 3) >= Derived(1, 2)
    assert sorted([Derived(2), Derived(1, 5), Derived(1)]) == [Derived(1), Derived(1, 5), Derived(2)]
    with pytest.raises(TypeError, match="not supported between"):
        assert Derived(1) < 2
    assert Base(1) != Derived(1) and Plain(1) != Derived(1) and Plain(1) == Plain(1)
    plain = Plain(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'rows'"):
        plain.rows = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'columns'"):
        del plain.columns
    match Derived(4, 5):
        case Derived(rows, columns=columns):
            assert (rows, columns) == (4, 5)
        case _:
            pytest.fail("no match")


KINDS = (dataclass, dataclasses.dataclass)


@pytest.mark.parametrize(("base", "derived"), [*itertools.product(KINDS, repeat=2)])
def test_classes_of_both_kinds_inherit_from_one_another(base: Decorator, derived: Decorator) -> None:
    @base(frozen=True)
    class Base:
        rows: int

    @derived(frozen=True)
    class Derived(Base):
        columns: int = 2

    value = replace(Derived(1), rows=3)  # type: ignore[call-arg]
    assert value == Derived(3, 2) and hash(value) == hash((3, 2))  # type: ignore[call-arg]
    for name in ("rows", "columns", "other"):
        with pytest.raises(FrozenInstanceError):
            setattr(value, name, 1)
    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):
        derived(type("Open", (Base,), {"__annotations__": {"more": int}}))
    open_base = base(type("OpenBase", (), {"__annotations__": {"more": int}}))
    with pytest.raises(TypeError, match="cannot inherit frozen dataclass from a non-frozen one"):
        derived(frozen=True)(type("Frozen", (open_base,), {"__annotations__": {"less": int}}))


@dataclass(frozen=True, slots=True)
class Pickled:
    rows: int
    inner: "Pickled | None" = None


def test_pickles() -> None:
    value = Pickled(3, Pickled(4))
    assert pickle.loads(pickle.dumps(value)) == value
    assert repr(value) == "Pickled(rows=3, inner=Pickled(rows=4, inner=None))"


def test_a_class_is_asked_for_its_signature_before_its_first_instance() -> None:
    cls = made(dataclass, frozen=True, slots=True)
    assert list(inspect.signature(cls).parameters) == ["rows", "name", "parts", "hidden", "last"]


def test_what_is_no_field_cannot_be_set_either() -> None:
    """With slots, the standard library's raises an error about super() instead (in 3.11)."""
    for slots in (False, True):
        block = made(dataclass, frozen=True, slots=slots)(1)
        with pytest.raises(FrozenInstanceError, match="cannot assign to field 'unknown'"):
            block.unknown = 3

        class Plain(type(block)):  # type: ignore[misc]
            pass

        plain = Plain(1)
        plain.extra = 3
        assert plain.extra == 3
        del plain.extra
        assert not hasattr(plain, "extra")


def test_threads_may_make_the_first_instances_at_once() -> None:
    for _ in range(20):
        cls, made_here, gate = made(dataclass, frozen=True, slots=True), [], threading.Barrier(4)

        def first(_: int, cls: Any = cls, gate: Any = gate, made_here: list[Any] = made_here) -> None:
            gate.wait()
            made_here.append((cls(1) == cls(1), cls(1).rows))

        at_once(first)
        assert made_here == [(True, 1)] * 4


def test_the_package_uses_no_other() -> None:
    """One from the standard library takes fifteen times as long."""
    found = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if path.name != "records.py" and re.search(r"\bdataclasses\b", text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and node.module == "dataclasses"
        if "dataclass" in [alias.name for alias in node.names]
    ]
    assert found == []
