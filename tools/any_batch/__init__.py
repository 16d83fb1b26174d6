"""deterministic="batch" over the networks of docs/networks.md: bits of items, and what it costs."""
