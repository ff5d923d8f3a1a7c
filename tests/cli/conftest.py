"""The program, for every test of the command line."""

from tests.support.program import program

__all__ = ["program"]
