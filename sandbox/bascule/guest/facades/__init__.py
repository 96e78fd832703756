"""The modules a script can import, built on first import and fresh for each run."""

from bascule.guest.facades.registry import Modules, build_modules, class_replacements

__all__ = ["Modules", "build_modules", "class_replacements"]
