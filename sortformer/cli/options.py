"""Options that several commands share."""

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sortformer.cli.console import say, usage_errors
from sortformer.config.channel import EACH, channel_of
from sortformer.config.clustering import ClusteringConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.errors import InputError
from sortformer.formats.kinds import FORMATS, WORDY
from sortformer.formats.names import check_names_files, check_person
from sortformer.metrics.protocol import PROTOCOLS

if TYPE_CHECKING:
    from sortformer.diarizer import Diarizer

__all__ = [
    "Channel",
    "ChannelOrEach",
    "Clustering",
    "Decision",
    "Device",
    "End",
    "Enroll",
    "Formats",
    "MinOff",
    "MinOn",
    "Model",
    "Offset",
    "Onset",
    "OutFolder",
    "Overwrite",
    "PadOff",
    "PadOn",
    "Postprocess",
    "ProtocolName",
    "Regions",
    "SkipExisting",
    "Start",
    "Uri",
    "Words",
    "as_options",
    "clips",
    "clustered",
    "loaded",
    "postprocessed",
]

_TIME = re.compile(r"((\d{1,6}:[0-5]?\d|\d{1,6}):[0-5]?\d|\d{1,9})(\.\d*)?")  # 1:02:03.5, 90:00, 5400

OutFolder = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="DIR", help="Write files to this folder instead of stdout.")
]
Formats = Annotated[
    str,
    typer.Option(
        "--format",
        "-f",
        metavar="LIST",
        help=f"One of {', '.join(FORMATS)}; with -o, several separated by commas.",
    ),
]
Words = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE|DIR",
        help=f"Transcript as JSON, CTM, SRT or VTT, to add words with speakers to {WORDY}; for several recordings, a "
        "folder with NAME.json etc., or a CTM.",
    ),
]
Regions = Annotated[
    Path | None,
    typer.Option("--uem", metavar="FILE|DIR", help="Restrict results to the regions of UEM files."),
]
SkipExisting = Annotated[bool, typer.Option("--skip-existing", help="Skip recordings that already have results.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing results.")]


def _time(text: str) -> float:
    if not _TIME.fullmatch(text):
        raise typer.BadParameter(f"a time must be in seconds, or like 1:02:03.5, got {text!r}")
    return sum(float(part) * 60**power for power, part in enumerate(reversed(text.split(":"))))


Start = Annotated[
    float | None,
    typer.Option(parser=_time, metavar="TIME", help="Process a file from this time on: seconds, or 1:02:03."),
]
End = Annotated[float | None, typer.Option(parser=_time, metavar="TIME", help="Process a file up to this time.")]

Model = Annotated[
    str | None,
    typer.Option(metavar="PATH|ID", help="Folder, .nemo file or Hugging Face id (default: the model in the package)."),
]


def _device(name: str) -> str:
    # A device that this machine lacks is not a usage error; `doctor` reports it.
    if not re.fullmatch(r"auto|(cpu|cuda|mps)(:\d+)?", name):
        raise typer.BadParameter(f"there is no device {name!r}; choose auto, cpu, cuda or mps")
    return name


Device = Annotated[str, typer.Option(callback=_device, help="auto, cpu, cuda or mps.")]


def _one_channel(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise typer.BadParameter(f"the channel must be one number, 1 or more, got {text!r}")
    return int(text)


Channel = Annotated[
    int | None,
    typer.Option(parser=_one_channel, metavar="N", help="Use one channel (from 1) instead of the mean of all."),
]


def _uri(name: str | None) -> str | None:
    if name is None:
        return None
    if not name.strip():
        raise typer.BadParameter("the name of a recording must not be blank")
    with usage_errors():
        return check_names_files(name)


Uri = Annotated[
    str | None,
    typer.Option("--uri", metavar="NAME", callback=_uri, help="Name of the recording in the results, also for a pipe."),
]


def _channel(text: str) -> Any:
    try:
        return channel_of(int(text) if text.isdecimal() else text)
    except InputError:
        raise typer.BadParameter(f"the channel must be a number, 1 or more, or {EACH}, got {text!r}") from None


ChannelOrEach = Annotated[
    Any,
    typer.Option(
        parser=_channel,
        metavar="N|each",
        help="Use one channel (from 1) instead of the mean of all; each: one speaker per channel.",
    ),
]
Enroll = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=CLIP", help="Name a known speaker, by a clip of a few seconds; repeatable."),
]
Clustering = Annotated[
    float | None,
    typer.Option(
        metavar="DISTANCE",
        help="Minimum distance between two speakers' voices (higher: fewer speakers); 0: no clustering.",
    ),
]
Postprocess = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Published post-processing instead of the model's own: v2-dihard3, none, ..."),
]
Decision = Annotated[
    str | None,
    typer.Option(metavar="slots|least_error", help="Decide on each slot separately, or on all of them jointly."),
]
Onset = Annotated[float | None, typer.Option(help="Probability above which a turn starts.")]
Offset = Annotated[float | None, typer.Option(help="Probability below which a turn ends.")]
PadOn = Annotated[float | None, typer.Option(help="Extend the start of turns by so many seconds.")]
PadOff = Annotated[float | None, typer.Option(help="Extend the end of turns by so many seconds.")]
MinOn = Annotated[float | None, typer.Option(help="Drop turns shorter than this, in seconds.")]
MinOff = Annotated[float | None, typer.Option(help="Fill pauses shorter than this, in seconds.")]

ProtocolName = Annotated[
    str, typer.Option(help=f"{'; '.join(map(str, PROTOCOLS.values()))}.", metavar="|".join(PROTOCOLS))
]


def clustered(settings: PostprocessConfig, distance: float | None) -> PostprocessConfig:
    """Return the settings changed by the ``distance`` of ``--clustering``: 0 is by slot, None is no change.

    Raises:
        ConfigError: when it is not a valid distance.
    """
    if distance is None:
        return settings
    if not distance:
        return replace(settings, clustering=None)
    before = settings.clustering or ClusteringConfig(distance)
    return replace(settings, clustering=replace(before, threshold=distance))


def postprocessed(
    own: PostprocessConfig, name: str | None, distance: float | None, **given: str | float | None
) -> PostprocessConfig:
    """Return a model's ``own`` settings, or those called ``name``, changed by the options that are not None.

    ``distance`` is that of ``--clustering``; the others are ``given`` by field name.

    Raises:
        ConfigError: when there are no settings of that name, or a value is invalid.
    """
    from sortformer.config.presets import as_postprocess

    changes: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
    settings = clustered(replace(as_postprocess(own if name is None else name), **changes), distance)
    if settings.clustering is None and own.clustering is not None and distance is None:
        say(f"note: '{name}' has no clustering, which this model uses: add --clustering {own.clustering.threshold:g}")
    return settings


def as_options(settings: PostprocessConfig) -> str:
    """Return settings as command line options."""
    return (
        f"--decision {settings.decision} --onset {settings.onset:g} --offset {settings.offset:g}"
        f" --pad-on {settings.pad_on_s:g} --pad-off {settings.pad_off_s:g}"
        f" --min-on {settings.min_on_s:g} --min-off {settings.min_off_s:g}"
        f" --clustering {0 if settings.clustering is None else settings.clustering.threshold:g}"
    )


def loaded(model: str | None, device: str, preset: str | None) -> "Diarizer":
    """Return the diarizer of a model that has the preset; None and ``offline`` are always valid."""
    from sortformer.config.presets import model_preset
    from sortformer.diarizer import Diarizer
    from sortformer.inference import OFFLINE

    diarizer = Diarizer.load(model, device)
    if preset not in (None, OFFLINE):
        with usage_errors():
            model_preset(diarizer.model.config, preset)
    return diarizer


def clips(enroll: Iterable[str] | None) -> dict[str, str]:
    """Parse options like ``chair=chair.wav`` into clips by name.

    Raises:
        InputError: when one has no clip, or the name is missing, invalid or given twice.
    """
    found: dict[str, str] = {}
    for option in enroll or ():
        name, _, clip = option.partition("=")
        if not clip:
            raise InputError(f"--enroll takes a name and a clip, like chair=chair.wav, got {option!r}")
        check_person(name, found)
        found[name] = clip
    return found
