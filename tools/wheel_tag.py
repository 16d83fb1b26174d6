"""Hatchling's hook that tags the wheel for Linux on x86-64: pure Python, but what it makes and runs is machine code."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TAG = "py3-none-manylinux_2_17_x86_64"  # 2.17: the oldest glibc that pip of Python 3.10 knows by this name


class WheelTag(BuildHookInterface):  # type: ignore[misc] # it has no types where hatchling is not installed
    """Asked once for each wheel, also for the one of an editable installation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Put the tag into `build_data`; whatever the version."""
        build_data["tag"] = TAG
