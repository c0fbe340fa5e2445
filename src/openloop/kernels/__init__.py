"""ARRAYS IN, ARRAYS OUT: each keeps a plain NumPy twin beside it. Kernels know no nouns."""
