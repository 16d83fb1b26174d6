"""What networks compute with, apart from what describes them: one from a pack needs no more."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
