"""Recurrent layers for the bench: problems, data, and the answer from the equations."""
