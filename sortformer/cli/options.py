"""Options that several commands share."""

from collections.abc import Iterable
from typing import Annotated

import typer

from sortformer.errors import InputError
from sortformer.formats.names import check_name

__all__ = ["Device", "Enroll", "Model", "clips"]

Model = Annotated[
    str | None,
    typer.Option(
        metavar="PATH|ID", help="A folder, a .nemo file or a Hugging Face id; the package's own model if not given."
    ),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
Enroll = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=CLIP", help="A voice that is known, from a few seconds of it; may be repeated."),
]


def clips(enroll: Iterable[str] | None) -> dict[str, str]:
    """Return the clip of each name in options like ``chair=chair.wav``.

    Raises:
        InputError: when one has no name or no clip, RTTM cannot express a name, or a name comes twice.
    """
    found: dict[str, str] = {}
    for option in enroll or ():
        name, _, clip = option.partition("=")
        if not clip:
            raise InputError(f"--enroll takes a name and a clip, like chair=chair.wav, got {option!r}")
        if check_name(name, "speaker") in found:
            raise InputError(f"--enroll names {name!r} twice")
        found[name] = clip
    return found
