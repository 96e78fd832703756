"""The allow-lists, all of them data: syntax, names, modules, attributes."""

__all__ = ()
