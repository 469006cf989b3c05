"""memwall: what must a GPU kernel, or one pass of an LLM, cost?

    >>> import memwall
    >>> gemv = memwall.roofline("gemv", gpu="h100")
    >>> gemv.regime, round(gemv.bound_time_s * 1e6, 2)
    ('memory-bound', 40.05)

Importing memwall imports nothing else; each name below is found when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from memwall.errors import MemwallError as MemwallError
    from memwall.hardware import load as gpu
    from memwall.models.load import load as model
    from memwall.reports.attention import attention as attention
    from memwall.reports.capacity import capacity as capacity
    from memwall.reports.collective import collective_time as collective
    from memwall.reports.cost import cost as cost
    from memwall.reports.plan import plan as plan
    from memwall.reports.quant import quant as quant
    from memwall.reports.roofline import roofline as roofline
    from memwall.reports.serve import serve as serve
    from memwall.reports.step import step as step
    from memwall.reports.train_step import train_step as train_step
    from memwall.reports.training import training_memory as training_memory

_PUBLIC = {
    "roofline": ("memwall.reports.roofline", "roofline"),
    "attention": ("memwall.reports.attention", "attention"),
    "step": ("memwall.reports.step", "step"),
    "capacity": ("memwall.reports.capacity", "capacity"),
    "collective": ("memwall.reports.collective", "collective_time"),
    "plan": ("memwall.reports.plan", "plan"),
    "serve": ("memwall.reports.serve", "serve"),
    "cost": ("memwall.reports.cost", "cost"),
    "quant": ("memwall.reports.quant", "quant"),
    "train_step": ("memwall.reports.train_step", "train_step"),
    "training_memory": ("memwall.reports.training", "training_memory"),
    "gpu": ("memwall.hardware", "load"),
    "model": ("memwall.models.load", "load"),
    "MemwallError": ("memwall.errors", "MemwallError"),
}

__all__ = [
    "MemwallError",
    "__version__",
    "attention",
    "capacity",
    "collective",
    "cost",
    "gpu",
    "model",
    "plan",
    "quant",
    "roofline",
    "serve",
    "step",
    "train_step",
    "training_memory",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'memwall' has no attribute '{name}'")
    from importlib import import_module

    module, attribute = _PUBLIC[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
