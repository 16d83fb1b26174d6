"""Parts of a tensor by indices that are data."""
