"""A time step of recurrent layers: the product with the state, and the cell after it."""
