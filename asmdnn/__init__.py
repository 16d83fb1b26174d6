"""asmdnn: deep-learning primitives whose kernels are machine code made by readable Python.

    import asmdnn as dnn
    y = dnn.ops.conv2d(x, w, b, stride=1, padding=1, post_ops=[dnn.Eltwise("relu")])

See README.md for the primitive-descriptor API.  Importing does no work: no CPU detection, no code, no PeachPy, no numpy
before the first name is used.  The names are those of `asmdnn/api.py`.
"""

import importlib.util
from typing import TYPE_CHECKING, Any

from asmdnn.errors import no_attribute
from asmdnn.forking import importing
from asmdnn.version import __version__ as __version__

if TYPE_CHECKING:
    from asmdnn.api import *  # noqa: F403

# Names of the API that come without the rest: a network from a pack is there before all primitives are imported.
EARLY = {
    **dict.fromkeys(("load_network", "load_pack", "load_onnx"), "network.loading"), "Engine": "primitives.core.engine",
}  # fmt: skip
PARTS = ("asm", "ukernel")  # of the library, with an API of their own


def __getattr__(name: str) -> Any:
    """Called for a name that is not here yet (PEP 562): a submodule, one of EARLY, or the API, loaded whole."""
    if name.startswith("__") and name != "__all__":  # asked for by inspect, pickle and the like
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with importing():
        if name.isidentifier() and importlib.util.find_spec(f"{__name__}.{name}"):
            return importlib.import_module(f"{__name__}.{name}")
        if name in EARLY:
            early = getattr(importlib.import_module(f"{__name__}.{EARLY[name]}"), name)
            return globals().setdefault(name, early)
        api = importlib.import_module(f"{__name__}.api")
    names = {public: getattr(api, public) for public in api.__all__}
    globals().update(names, __all__=["__version__", *names])
    try:
        return globals()[name]
    except KeyError:
        raise no_attribute(__name__, name, globals()["__all__"]) from None


def __dir__() -> list[str]:
    """For completion in a shell or a notebook."""
    public = __getattr__("__all__")
    return sorted({*public, *PARTS, *(name for name in globals() if name.startswith("__"))})
