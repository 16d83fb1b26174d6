"""From a spec to a call of its kernel, by the reference of its class.

Every module of tests/generators/references states `REFERENCES`: for classes of specs, what makes their cases.
"""

import importlib
import pkgutil
from functools import cache
from zlib import crc32

import numpy as np

from asmdnn.generators.contract import KernelSpec
from tests.generators import references as package
from tests.generators.case import Case, Reference


def case_of(spec: KernelSpec, integers: bool = True) -> Case:
    """Data and expectation; the same again if the kernel does not compute, so that real numbers are no other case."""
    reference = references()[type(spec)]
    return _case(spec, integers or not reference.rounds)


@cache
def _case(spec: KernelSpec, integers: bool) -> Case:
    """The seed is the name's, so that a failing case is the same case again."""
    return references()[type(spec)].make(spec, np.random.default_rng(crc32(spec.name.encode())), integers)


@cache
def references() -> dict[type, Reference]:
    """By class of the spec."""
    names = [module.name for module in pkgutil.iter_modules(package.__path__)]
    modules = [importlib.import_module(f"{package.__name__}.{name}") for name in names]
    return {kind: reference for module in modules for kind, reference in module.REFERENCES.items()}
