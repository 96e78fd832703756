"""The program inside the container: a deny-by-default interpreter for one script, and its way to the host.

It trusts its image and the host, never the script. The host trusts nothing that comes from here. Nothing is
imported from here: the program is ``bascule.guest.main``.
"""

__all__ = ()
