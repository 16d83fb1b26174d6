"""Whatever is wrong is said in one sentence, where it was written; nothing crashes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from asmdnn import asm
from asmdnn.asm import mem
from asmdnn.asm.levels import level_of, level_with
from asmdnn.asm.prototype import parse_prototype
from asmdnn.errors import AsmdnnError, InvalidArguments

RAX, R12, ZMM = asm.register("r64", 0), asm.register("r64", 12), asm.register("zmm", 1)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("dot", "is not of the form"),
        ("float dot(const float *)", "has no type and name"),
        ("float dot(float x, float x)", "names two arguments alike"),
        ("float dot(void x)", "void argument"),
        ("struct s dot(int x)", "not a type that is known here"),
        ("long double dot(int x)", "no integer, pointer, float or double"),
        ("int dot(int x, ...)", "has no type and name"),
        ("widget dot(int x)", "not a type that is known here"),
        (3, "is not of the form"),
    ],
)
def test_prototypes(text: Any, what: str) -> None:
    with pytest.raises(InvalidArguments, match=what):
        parse_prototype(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("void f(void)", "void f(void)"),
        ("int f()", "int f(void)"),
        ("const  char *f ( const char*s , unsigned long  n ) ;", "const char *f(const char *s, unsigned long n)"),
        ("float *f(double x[], const float *const y)", "float *f(double *x, const float *y)"),
        ("bool f(uint8_t flag)", "_Bool f(uint8_t flag)"),
    ],
)
def test_prototypes_are_read(text: str, shown: str) -> None:
    assert str(parse_prototype(text)) == shown


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"isa": "avx3"}, "isa 'avx3' is not one of"),
        ({"isa": "avx2+x87"}, "asks for 'x87': known are"),
        ({"isa": "avx2+popct"}, "asks for 'popct': known are .*: did you mean popcnt"),
        ({"isa": ()}, "is empty: name a level"),
        ({"reads": {"z": "4*n"}}, "names no pointer argument"),
        ({"reads": {"n": "4*n"}}, "names no pointer argument"),
        ({"writes": {"x": "4*n"}}, "is a pointer to const"),
        ({"reads": {"x": "4*m"}}, "in which 'm' is neither an integer argument nor"),
        ({"reads": {"x": "4*"}}, "which is no expression"),
        ({"reads": {"x": "open('x')"}}, "in which 'open' is neither"),
        ({"reads": {"x": "n.real"}}, "in which 'n.real' is neither"),
        ({"reads": {"x": "4.5*n"}}, "in which '4.5' is neither"),
        ({"calls": {"no_such_function": "double(double)"}}, "is in neither libc nor libm"),
        ({"calls": {"f": "double"}}, "is not of the form"),
        ({"calls": {"f": 3}}, "give a type such as"),
        ({"calls": {"f": ("double(double)", "sqrt")}}, "neither a callable nor an address"),
    ],
)
def test_options(options: dict[str, Any], what: str) -> None:
    with pytest.raises(InvalidArguments, match=what):
        asm.function("float f(const float *x, size_t n)", **options)(lambda f, x, n: f.ret())


def test_the_body_takes_what_the_prototype_has() -> None:
    with pytest.raises(InvalidArguments, match=r"the body of 'f' must take \(f, x, n\)"):
        asm.function("float f(const float *x, size_t n)")(lambda f, x: None)


def ends(f: Any) -> None:
    f.ret(1)


def jumps_to_the_end(f: Any) -> None:
    end = f.label("end")
    f.TEST(RAX, RAX)
    f.JZ(end)
    f.ret(1)
    f.bind(end)


def two_blocks(f: Any) -> None:
    with f.switch(RAX, range(2)) as case:
        with case(0):
            pass
        with case(0):
            pass


def open_case(f: Any) -> None:
    with f.switch(RAX, range(2)) as case:
        with case(0):
            pass
        with case.other:
            pass
    f.ret(1)


def no_otherwise(f: Any) -> None:
    with f.either("Z") as (then, _), then:
        f.ADD(RAX, 1)


def unbound(f: Any) -> None:
    f.JMP(f.label("nowhere"))
    f.ret(1)


@pytest.mark.parametrize(
    ("body", "error", "what"),
    [
        (lambda f: f.VADDPSS(RAX, RAX), AttributeError, "did you mean VADDSS or VADDPS"),
        (lambda f: f.vaddps(RAX, RAX), AttributeError, "neither an instruction nor a member.*: did you mean VADDPS"),
        (lambda f: f.frob(RAX, RAX), AttributeError, "neither an instruction nor a member of the function's builder."),
        (lambda f: f.bind("end"), InvalidArguments, "'end' is no label: make one by label"),
        (lambda f: f.ADD(RAX, "1"), InvalidArguments, "is a str, not a register"),
        (lambda f: f.VADDPS(RAX, RAX, RAX), InvalidArguments, "does not exist: the forms are"),
        (lambda f: f.MOV(mem(RAX), 1), InvalidArguments, "size"),
        (lambda f: f.RET(), AttributeError, r"use ret\(value\)"),
        (lambda f: f.PUSH(RAX), AttributeError, r"use local\(\)"),
        (lambda f: f.CALL(RAX), AttributeError, r"use call\(name"),
        (lambda f: f.PUSHFQ(), AttributeError, r"use SETcc, since rsp stays where it is"),
        (lambda f: (f.SYSCALL(), f.ret(1)), InvalidArguments, r"\(test_mistakes.py:\d+\) of 'f' needs syscall, which"),
        (lambda f: f.MOV(RAX, mem(RAX, 1 << 31)), InvalidArguments, "displacement 2147483648 does not fit 32 bits"),
        (lambda f: f.JMP(RAX), InvalidArguments, r"use switch\(\)"),
        (lambda f: f.ADD(asm.register("r64", 4), 8), InvalidArguments, r"names rsp: take local memory by local\(\)"),
        (lambda f: f.gp.take("all", 16), asm.OutOfRegisters, "'all' needs 16"),
        (lambda f: f.local(0), InvalidArguments, r"local\(0\) is not from 1"),
        (lambda f: f.vector("f64"), InvalidArguments, r"vector\('f64'\) is not known"),
        (lambda f: f.ret(), InvalidArguments, r"ret\(\) has no value, where 'f' gives int64_t"),
        (lambda f: f.ret(asm.register("xmm", 1)), InvalidArguments, r"ret\(xmm1\) is not of the kind of int64_t"),
        (lambda f: f.call("sqrt", RAX), InvalidArguments, "is not stated: calls= of 'f' has nothing"),
        (lambda f: f.steps(RAX, 0).__enter__(), InvalidArguments, "steps of 0"),
        (lambda f: f.switch(RAX, ()).__enter__(), InvalidArguments, "needs 1 to 4096 values"),
        (lambda f: f.switch(RAX, (0, 1 << 40)).__enter__(), InvalidArguments, "needs 1 to 4096 values"),
        (lambda f: f.when("ZZ").__enter__(), InvalidArguments, "condition 'ZZ' is none of a jump's: did you mean"),
        (two_blocks, InvalidArguments, "case 0 of a switch has two blocks"),
        (open_case, InvalidArguments, "'switch 1' has no block"),
        (no_otherwise, InvalidArguments, "has no otherwise block"),
        (
            lambda f: (f.steps(RAX, 1), f.ret(1)),
            InvalidArguments,
            r"steps\(...\) of 'f' has written nothing: write with f",
        ),
        (
            lambda f: (f.when("Z"), f.ret(1)),
            InvalidArguments,
            r"when\(...\) of 'f' has written nothing: write with f.when",
        ),
        (lambda f: (f.switch(RAX, [1]), f.ret(1)), InvalidArguments, r"switch\(...\) of 'f' has written nothing"),
        (unbound, InvalidArguments, r"'nowhere' is jumped to \(test_mistakes.py:\d+\) but never bound"),
        (lambda f: f.ADD(RAX, 1), InvalidArguments, r"code runs after the last .*\(test_mistakes.py:\d+\): end it by"),
        (lambda f: None, InvalidArguments, "code runs after the last instruction"),
        (jumps_to_the_end, InvalidArguments, "label 'end' stands after the last instruction"),
        (lambda f: (f.POPCNT(RAX, RAX), f.ret(RAX)), InvalidArguments, r"needs popcnt.*isa=\"avx2\+popcnt\""),
        (lambda f: (f.VPXORD(ZMM, ZMM, ZMM), f.ret(1)), InvalidArguments, 'needs avx512f.*isa="avx512_core"'),
    ],
)
def test_bodies(body: Callable[[Any], Any], error: type[Exception], what: str) -> None:
    pytest.importorskip("iced_x86")
    made = asm.function("int64_t f(void)")(body)
    with pytest.raises(error, match=what):
        made()
    assert asm.function("int64_t f(void)")(ends)() == 1


@pytest.mark.parametrize(
    ("level", "missing", "asked"),
    [
        ("avx2", ["avx512f", "avx512vl"], "avx512_core"),
        ("avx2", ["avx_vnni"], "avx2_vnni"),
        ("avx2+aes", ["avx512_bf16", "popcnt"], "avx512_core_bf16+aes+popcnt"),
        ("avx512_core", ["amx_tile"], "avx512_core_amx"),
        ("avx512_core", ["sha", "vaes"], "avx512_core+sha+vaes"),
        ("avx512_core", ["avx_vnni"], ""),  # no level has both
        ("avx2", ["3dnow"], ""),
    ],
)
def test_the_level_that_has_it(level: str, missing: list[str], asked: str) -> None:
    assert level_with(level_of(level), missing) == asked


@asm.function(
    "double total(const double *x, uint8_t *y, size_t n, float scale)", reads={"x": "8*n"}, writes={"y": "max(n, 2)"}
)
def total(f: Any, x: Any, y: Any, n: Any, scale: Any) -> None:
    found = f.vectors().take("sum").xmm
    f.VXORPS(found, found, found)
    with f.steps(n, 1, "numbers"):
        f.VADDSD(found, found, mem(x))
        f.ADD(x, 8)
    f.MOV(mem(y, size=1), 1)
    f.ret(found)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"x": np.ones(3, np.float32)}, "x of total is float32, where C has const double"),
        ({"x": np.ones(6)[::2]}, "x of total is not contiguous"),
        ({"x": np.ones(2)}, r"x of total has 16 bytes, where 8\*n = 24 are touched"),
        ({"x": [1.0, 2.0, 3.0]}, "x is a list, and no array"),
        ({"x": None}, "x is a NoneType"),
        ({"y": np.ones(3, np.int8)}, "y of total is int8, where C has uint8_t"),
        ({"y": b"abc"}, "y of total is read-only"),
        ({"n": -1}, "n of total is -1, which is no size_t"),
        ({"n": 3.0}, "n of total is 3.0, which is no size_t"),
        ({"n": "3"}, "n of total is '3'"),
        ({"scale": "1"}, "scale of total is '1', which is no float"),
        ({"scale": 1j}, "scale of total is 1j"),
    ],
)
def test_arguments(change: dict[str, Any], what: str) -> None:
    given = {"x": np.arange(3.0), "y": bytearray(3), "n": 3, "scale": 1.0}
    assert total(*given.values()) == 3
    with pytest.raises(InvalidArguments, match=what):
        total(*(given | change).values())


def test_extents_of_awkward_arguments() -> None:
    """C names that are words of Python, and a division by 0."""

    @asm.function("int64_t f(const int8_t *x, size_t in, size_t lambda)", reads={"x": "max(1, 2) - 1"})
    def f(f: Any, x: Any, within: Any, other: Any) -> None:
        f.ret(within)

    assert f(np.ones(1, np.int8), 5, 6) == 5

    @asm.function("int64_t g(const int8_t *x, size_t n, size_t m)", reads={"x": "n // m"})
    def g(f: Any, x: Any, n: Any, m: Any) -> None:
        f.ret(n)

    assert g(np.ones(2, np.int8), 4, 2) == 4
    with pytest.raises(InvalidArguments, match="x of g touches n // m, which divides by 0"):
        g(np.ones(2, np.int8), 4, 0)


def test_how_many_arguments() -> None:
    with pytest.raises(InvalidArguments, match="takes 4 arguments, not 1"):
        total(1)


def test_pointers_of_unknown_extent_go_through_raw() -> None:
    @asm.function("int64_t first(const int64_t *x)")
    def first(f: Any, x: Any) -> None:
        f.ret(mem(x))

    with pytest.raises(InvalidArguments, match=r"x of first has no stated size: give reads= or writes=, or call raw"):
        first(np.arange(3))
    held = np.array([42, 43])
    assert [first.raw(held.ctypes.data), first.raw(held.ctypes.data + 8)] == [42, 43]
    for wrong in (held, "x", 1.5, None, -1, 2**64):
        with pytest.raises((TypeError, OverflowError)):
            first.raw(wrong)


def test_every_error_is_ours() -> None:
    assert issubclass(asm.OutOfRegisters, AsmdnnError)
