"""The `asmdnn` command."""
