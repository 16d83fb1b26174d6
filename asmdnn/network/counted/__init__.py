"""Dims that data decide, planned within a bound: results have as many places as the bound, of which a count counts."""
