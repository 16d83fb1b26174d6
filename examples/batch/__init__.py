"""A folder of images through one network, by Dask, by Ray or by plain processes."""
