"""The arena: every scheme on the same set of cases, with published and with tuned settings.

`silvan compare --arena` runs it. ``arena.toml`` defines it: fabrics and traffic as scenarios, the
objective of each, seeds, and the budget of tuning.
"""

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
