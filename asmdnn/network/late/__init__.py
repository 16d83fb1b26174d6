"""What a network computes when data have decided dims, and that is no network of its own."""
