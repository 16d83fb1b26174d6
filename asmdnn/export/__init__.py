"""Networks and primitives for C: an object file, a header, and the runtime beside them."""
