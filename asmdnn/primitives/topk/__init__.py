"""The k largest or smallest numbers along an axis, and where they are: top-k, arg-max, arg-min."""
