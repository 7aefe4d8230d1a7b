"""The arena: every scheme on the cases of ``arena.toml``, with published and tuned settings."""

from silvan.comparing.arena.definition import Arena, Case, read_arena
from silvan.comparing.arena.judge import Entry
from silvan.comparing.arena.plan import Estimate, arena_runs, plan_arena
from silvan.comparing.arena.run import ArenaProgress, ArenaResult, run_arena

__all__ = [
    "Arena",
    "ArenaProgress",
    "ArenaResult",
    "Case",
    "Entry",
    "Estimate",
    "arena_runs",
    "plan_arena",
    "read_arena",
    "run_arena",
]
