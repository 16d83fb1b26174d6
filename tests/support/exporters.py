"""Arrays of other libraries, which export the memory of numpy's."""

from typing import Any

import numpy as np


class SpeaksDlpack:
    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # kDLCPU


class SpeaksArrayInterface:
    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array  # keeps the storage
        self.__array_interface__ = array.__array_interface__
