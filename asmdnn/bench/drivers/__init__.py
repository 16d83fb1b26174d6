"""The drivers of `asmdnn bench`: every module here is one, with a `DRIVER`.

benchdnn's other drivers are read, so that a file with their problems says what is not built.
"""

import importlib
import pkgutil
from functools import cache

from asmdnn.bench.driver import AnyDriver
from asmdnn.bench.vocabulary import DRIVERS


@cache
def driver_names() -> tuple[str, ...]:
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


@cache
def all_driver_names() -> frozenset[str]:
    """benchdnn's too."""
    return frozenset((*driver_names(), *DRIVERS))


def driver_of(name: str) -> AnyDriver:
    """The driver of that name, one of `all_driver_names()`."""
    if name not in driver_names():
        from asmdnn.bench.foreign import foreign_driver  # not above: most runs have none

        return foreign_driver(name)
    driver: AnyDriver = importlib.import_module(f"{__name__}.{name}").DRIVER
    return driver
