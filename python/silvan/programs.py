"""Message-passing programs, built rank by rank."""

from silvan.inputs.programs import COLLECTIVES, Program, Rank, Request

__all__ = ["COLLECTIVES", "Program", "Rank", "Request"]
