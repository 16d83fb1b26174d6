"""Networks of models with open dims, by the shapes that came: at most so many bytes of them are kept."""

from typing import Any

from asmdnn.runtime.caches import Cache, Kept

NETWORKS_LIMIT_BYTES = 1 << 30

networks: Cache[tuple[object, Any], Kept] = Cache(NETWORKS_LIMIT_BYTES, "networks")


def forget(model: object) -> None:
    """Let go of all shapes of a model."""
    for key in [key for key in list(networks.entries) if key[0] is model]:
        networks.entries.pop(key, None)
