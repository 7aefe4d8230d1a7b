"""The exception of a failed hook, where the compiled module imports it."""

from silvan.schemes.hook_failure import HookFailure

__all__ = ["HookFailure"]
