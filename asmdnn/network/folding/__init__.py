"""A model for some dims: what is known is computed, bodies come in the place of their nodes."""
