"""The `bascule` command: results on standard output, diagnosis and progress on standard error.

Every module imports what it needs when its command runs, so that help and mistakes answer at once.
"""

__all__ = ()
