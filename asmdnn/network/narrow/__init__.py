"""Which values and products of a network have narrower types."""
