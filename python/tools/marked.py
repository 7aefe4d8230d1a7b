"""The part of a page that a tool writes, between two marks."""

from __future__ import annotations

END = "<!-- end of numbers -->"


def begin(tool: str) -> str:
    """Return the mark before what a tool writes."""
    return f"<!-- numbers: written by python/tools/{tool}.py -->"


def replaced(page: str, text: str, tool: str) -> str:
    r"""Put text between the marks of a page.

    Raises
    ------
    ValueError
        The page has no such marks.

    >>> page = f"before\n{begin('arena_page')}\nold\n{END}\nafter"
    >>> replaced(page, "new", "arena_page").splitlines()[2]
    'new'
    """
    mark = begin(tool)
    before, found, rest = page.partition(mark)
    _, end, after = rest.partition(END)
    if not found or not end:
        raise ValueError(f"the page has no place for numbers, between {mark} and {END}")
    return f"{before}{mark}\n{text}\n{END}{after}"
