"""Tools that many need, each with the least rights that do the job; see docs/tools.md.

`calculator`, `tables` and `texts` are ready; `files`, `sql` and `http` are made for one folder, database or
set of hosts by their ``tools(...)``. All trust whoever makes them and nothing that a call brings.
"""

__all__ = ()
