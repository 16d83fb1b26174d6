"""What was measured on which CPU: records of all problem sets, and the pages that are made of them."""
