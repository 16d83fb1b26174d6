"""The spec corpus: the kernels that the project is tested, dumped and proved on."""
