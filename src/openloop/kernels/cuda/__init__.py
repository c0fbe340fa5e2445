"""ON A GPU: kernels that Triton compiles, behind the signatures of their CPU twins.

They import NumPy, torch and Triton only.
"""

from __future__ import annotations

from importlib import import_module

from openloop.errors import MissingPackageError

try:
    import_module("torch")
    import_module("triton")
except ModuleNotFoundError as error:
    raise MissingPackageError(
        f"device='cuda': needs torch and Triton, and {error.name} is not installed; pip install 'openloop[cuda]'."
    ) from error
