"""Optional dependencies: the packages of extras."""

from importlib.util import find_spec

from sortformer.errors import InputError

__all__ = ["require_extra"]


def require_extra(what: str, extra: str, *packages: str) -> None:
    """Check, before the work starts, that the packages of an ``extra`` are installed.

    Raises:
        InputError: naming the missing ones and how to install them.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        how = f"pip install {' '.join(missing)}, or sortformer with its extra [{extra}]"
        raise InputError(f"{what} needs {', '.join(missing)}: {how}")
