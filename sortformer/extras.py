"""Packages that only a part of this one needs: its extras."""

from importlib.util import find_spec

from sortformer.errors import InputError

__all__ = ["require_extra"]


def require_extra(what: str, extra: str, *packages: str) -> None:
    """Refuse, before it is begun, what an ``extra`` is for, where packages are missing.

    Raises:
        InputError: naming them, and how to have them.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        how = f"pip install {' '.join(missing)}, or sortformer with its extra [{extra}]"
        raise InputError(f"{what} needs {', '.join(missing)}: {how}")
