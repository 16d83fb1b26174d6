"""Resampling: a tensor on a finer or a coarser grid."""
