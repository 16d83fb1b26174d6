"""The drivers of `asmdnn bench`: every module here is one, with a `DRIVER`."""

import importlib
import pkgutil

from asmdnn.bench.driver import AnyDriver


def driver_names() -> tuple[str, ...]:
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def driver_of(name: str) -> AnyDriver:
    """The driver of that name, which exists."""
    driver: AnyDriver = importlib.import_module(f"{__name__}.{name}").DRIVER
    return driver
