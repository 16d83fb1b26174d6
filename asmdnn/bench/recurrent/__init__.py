"""Recurrent layers for the bench: problems and data; what they compute is in asmdnn/definitions."""
