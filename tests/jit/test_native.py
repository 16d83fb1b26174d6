"""C functions by name: pointers that outlive the library object, and no C parser."""

import gc
from pathlib import Path

import pytest

from asmdnn.jit import native
from asmdnn.jit.native import address, ffi, function, open_library
from tests.support.python import python


def test_a_function_can_be_called_after_its_library_object_is_gone() -> None:
    labs = function(open_library("libc.so.6"), "long (*)(long)", "labs")
    gc.collect()
    assert labs(-7) == 7
    assert ffi.cast("long (*)(long)", address(labs))(-8) == 8


def test_what_does_not_exist_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no_such_function"):
        function(open_library(None), "int (*)(void)", "no_such_function")
    with pytest.raises(OSError, match="no_such_library"):
        open_library("no_such_library.so")


def test_importing_jit_and_threads_loads_neither_a_c_parser_nor_peachpy() -> None:
    package = str(Path(native.__file__).parents[1])
    code = (
        "import sys, types\n"
        "sys.modules['asmdnn'] = types.ModuleType('asmdnn')\n"  # these packages alone, not all that asmdnn imports
        f"sys.modules['asmdnn'].__path__ = [{package!r}]\n"
        "import asmdnn.jit.kernels, asmdnn.runtime.threads\n"
        "print([name for name in ('pycparser', 'cffi', 'peachpy', 'numpy') if name in sys.modules])"
    )
    assert python(code) == "[]"
