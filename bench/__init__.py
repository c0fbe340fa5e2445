"""Side-by-side runs of openloop and its peers on the same input: `python -m bench [case ...] [--quick]`."""
