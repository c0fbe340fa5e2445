"""Any page: one template, one policy, and no text that becomes markup or script."""

from __future__ import annotations
