"""Options that several commands share."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from sortformer.config.clustering import ClusteringConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.errors import InputError
from sortformer.formats.names import check_name
from sortformer.metrics.protocol import PROTOCOLS

if TYPE_CHECKING:
    from sortformer.diarizer import Diarizer

__all__ = ["Channel", "Clustering", "Device", "Enroll", "Model", "ProtocolName", "check_preset", "clips", "clustered"]

Model = Annotated[
    str | None,
    typer.Option(
        metavar="PATH|ID", help="A folder, a .nemo file or a Hugging Face id; the package's own model if not given."
    ),
]


def _device(name: str) -> str:
    # What this machine lacks is no mistake in the command line, and `doctor` reports it.
    if not re.fullmatch(r"auto|(cpu|cuda|mps)(:\d+)?", name):
        raise typer.BadParameter(f"there is no device {name!r}; choose auto, cpu, cuda or mps")
    return name


Device = Annotated[str, typer.Option(callback=_device, help="auto, cpu, cuda or mps.")]
Channel = Annotated[int | None, typer.Option(min=1, help="Take one channel, from 1, instead of the mean.")]
Enroll = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=CLIP", help="A voice that is known, from a few seconds of it; may be repeated."),
]
Clustering = Annotated[
    float | None,
    typer.Option(metavar="DISTANCE", help="Voices further apart than that are two (more: fewer speakers); 0: by slot."),
]

ProtocolName = Annotated[
    str, typer.Option(help=f"{'; '.join(map(str, PROTOCOLS.values()))}.", metavar="|".join(PROTOCOLS))
]


def clustered(settings: PostprocessConfig, distance: float | None) -> PostprocessConfig:
    """Return the settings with what ``--clustering`` says; None says nothing.

    Raises:
        ConfigError: when it is no distance.
    """
    if distance is None:
        return settings
    if not distance:
        return replace(settings, clustering=None)
    before = settings.clustering or ClusteringConfig(distance)
    return replace(settings, clustering=replace(before, threshold=distance))


def check_preset(diarizer: "Diarizer", preset: str | None) -> None:
    """Make sure that the model knows how a recording shall be taken.

    Raises:
        ConfigError: when it has no such preset.
    """
    from sortformer.config.presets import model_preset
    from sortformer.diarizer import OFFLINE

    if preset not in (None, OFFLINE):
        model_preset(diarizer.model.config, preset)


def clips(enroll: Iterable[str] | None) -> dict[str, str]:
    """Return the clip of each name in options like ``chair=chair.wav``.

    Raises:
        InputError: when one has no name or no clip, RTTM cannot express a name, or it is taken.
    """
    if not enroll:
        return {}
    from sortformer.enrolled import check_person

    found: dict[str, str] = {}
    for option in enroll:
        name, _, clip = option.partition("=")
        if not clip:
            raise InputError(f"--enroll takes a name and a clip, like chair=chair.wav, got {option!r}")
        check_person(name, found)
        found[check_name(name, "speaker")] = clip
    return found
