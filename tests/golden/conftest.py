"""The update flag of the golden tests."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the hashes of kernels as they are now (-k FILE)"
    )
