"""The list of commands in the help, grouped by what they are for."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


class GroupedCommands(TyperGroup):
    """A group of commands whose help lists them under the headings of their panels."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, panel by panel in the order of their first commands."""
        panels: dict[str, list[tuple[str, Any]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                panel = getattr(command, "rich_help_panel", None) or "Commands"
                panels.setdefault(str(panel), []).append((name, command))
        width = max((len(name) for some in panels.values() for name, _ in some), default=0)
        limit = formatter.width - 6 - width
        for panel, commands in panels.items():
            with formatter.section(panel):
                rows = [
                    (name.ljust(width), one.get_short_help_str(limit)) for name, one in commands
                ]
                formatter.write_dl(rows)
