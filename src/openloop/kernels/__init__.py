"""Kernels: arrays in, arrays out; each keeps a plain NumPy twin beside it. Kernels know no nouns."""
