"""Options that several commands share."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from sortformer.cli.console import usage_errors
from sortformer.config.channel import EACH, channel_of
from sortformer.errors import InputError
from sortformer.formats.kinds import FORMATS, WORDY
from sortformer.formats.names import check_names_files
from sortformer.metrics.protocol import PROTOCOLS

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


Device = Annotated[str, typer.Option(callback=_device, help="auto (CUDA, or the CPU), cpu, cuda or mps.")]


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
