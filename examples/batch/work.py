"""What a worker does: load the pack once, and answer for some images.  It knows nothing of who calls it.

A pack is mapped, so workers on one machine share its weights' memory.  Each computes on one thread: workers use the
other CPUs.  Bits depend on neither the worker nor the order, so a run that was interrupted ends as one that was not.
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from PIL import Image

import asmdnn as dnn

MOST_PIXELS: Final = 50_000_000  # of a picture; more is refused before it is decoded
Row = dict[str, Any]


@lru_cache(1)
def network(pack: str) -> dnn.Network:
    """Once a process.  Raises InvalidArguments for a network that does not take one image and give one result."""
    net = dnn.load_network(pack, threads=1)
    dims = [shape for shape, _ in net.inputs.values()]
    if len(dims) != 1 or len(net.outputs) != 1 or len(dims[0]) != 4 or dims[0][:2] != (1, 3):
        raise dnn.InvalidArguments(f"{pack} must take one image, 1x3xHxW, and give one result; it takes {net.inputs}")
    return net


def pixels(path: Path, high: int, wide: int) -> npt.NDArray[np.float32]:
    """(1, 3, high, wide), from -1 to 1.  Raises OSError for a file that is no picture."""
    with Image.open(path) as picture:
        if picture.width * picture.height > MOST_PIXELS:
            raise OSError(f"{picture.width}x{picture.height} pixels are more than {MOST_PIXELS}")
        seen = picture.convert("RGB").resize((wide, high), Image.Resampling.BILINEAR)
    values = np.asarray(seen, np.float32).transpose(2, 0, 1) / np.float32(127.5) - np.float32(1)
    return np.ascontiguousarray(values)[None]


def answers(pack: str, paths: Sequence[str]) -> list[Row]:
    """A row for each image: its best class, the score, and a digest of all scores; or why there is none."""
    net = network(pack)
    ((_, _, high, wide), _) = next(iter(net.inputs.values()))
    rows = list[Row]()
    for path in paths:
        try:
            scores = net(pixels(Path(path), high, wide))
        except (OSError, ValueError, Image.DecompressionBombError) as error:
            rows.append({"file": path, "error": " ".join(str(error).split())[:200]})
            continue
        best = int(scores.argmax())
        digest = hashlib.sha256(scores.tobytes()).hexdigest()
        rows.append({"file": path, "best": best, "score": float(scores.flat[best]), "sha256": digest})
    return rows
