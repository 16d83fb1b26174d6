"""From operators to primitives: each file states for some operators the descriptions that compute them."""
