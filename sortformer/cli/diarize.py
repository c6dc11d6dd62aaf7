"""``sortformer diarize``: diarization of recordings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sortformer.cli.allocator import keep_freed_memory
from sortformer.cli.batch import Job, run
from sortformer.cli.console import usage_errors
from sortformer.cli.options import (
    ChannelOrEach,
    Clustering,
    Decision,
    Device,
    End,
    Enroll,
    Formats,
    MinOff,
    MinOn,
    Model,
    Offset,
    Onset,
    OutFolder,
    Overwrite,
    PadOff,
    PadOn,
    Postprocess,
    Regions,
    SkipExisting,
    Start,
    Uri,
    Words,
)
from sortformer.cli.recordings import Recording
from sortformer.cli.results import Results
from sortformer.cli.settings import clips, loaded, postprocessed
from sortformer.config.channel import EACH, check_speakers
from sortformer.errors import InputError
from sortformer.formats.gather import uem_in
from sortformer.formats.kinds import formats_named
from sortformer.formats.names import composed
from sortformer.warned import warn

if TYPE_CHECKING:
    from sortformer.annotation import Diarization
    from sortformer.diarizer import Progress

__all__ = ["diarize"]


def diarize(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES|DIRS|-", help="Recordings, folders (without subfolders), manifests, or - for stdin."
        ),
    ],
    out: OutFolder = None,
    formats: Formats = "rttm",
    words: Words = None,
    model: Model = None,
    device: Device = "auto",
    preset: Annotated[
        str | None,
        typer.Option(
            help="offline: process it whole; 30s, 10s, ...: stream at that latency (default: by model and length)."
        ),
    ] = None,
    num_speakers: Annotated[int | None, typer.Option(help="Number of speakers, if that many are found.")] = None,
    min_speakers: Annotated[
        int | None, typer.Option(help="Minimum number of speakers, if that many are found.")
    ] = None,
    max_speakers: Annotated[int | None, typer.Option(help="Maximum number of speakers.")] = None,
    oracle_num_speakers: Annotated[
        bool,
        typer.Option("--oracle-num-speakers", help="Number of speakers from the manifest ('num_speakers')."),
    ] = False,
    channel: ChannelOrEach = None,
    enroll: Enroll = None,
    exclusive: Annotated[bool, typer.Option("--exclusive", help="At most one speaker at a time.")] = False,
    postprocess: Postprocess = None,
    decision: Decision = None,
    clustering: Clustering = None,
    onset: Onset = None,
    offset: Offset = None,
    pad_on: PadOn = None,
    pad_off: PadOff = None,
    min_on: MinOn = None,
    min_off: MinOff = None,
    uem: Regions = None,
    start: Start = None,
    end: End = None,
    uri: Uri = None,
    shard: Annotated[
        str,
        typer.Option(metavar="I/N", help="Process only the I-th of N parts of the recordings, for N machines or jobs."),
    ] = "1/1",
    skip_existing: SkipExisting = False,
    overwrite: Overwrite = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and no summary.")] = False,
) -> None:
    """Find who speaks when in recordings.

    The result is RTTM on stdout, or files in a folder. A recording that fails does not stop the others; the exit code
    is then 1.
    """
    regions = None if uem is None else uem_in(uem)
    with usage_errors():
        results = Results(out, formats_named(formats), overwrite, skip_existing, transcripts=words, regions=regions)
        named = clips(enroll)
        wanted = (num_speakers, min_speakers, max_speakers)
        check_speakers(channel, named, *wanted)
        if oracle_num_speakers and any(number is not None for number in wanted):
            raise InputError("give either --oracle-num-speakers or a number of speakers, not both")
        if oracle_num_speakers and channel == EACH:
            raise InputError("--channel each has one speaker per channel: leave out --oracle-num-speakers")
        part, only = _shard(shard), _window(start, end, inputs)
    only |= {} if uri is None else {"name": uri}
    tuned = {"decision": decision, "onset": onset, "offset": offset}
    tuned |= {"pad_on_s": pad_on, "pad_off_s": pad_off, "min_on_s": min_on, "min_off_s": min_off}

    def load() -> Job:
        from sortformer.speaker_count import speaker_range

        keep_freed_memory()
        diarizer = loaded(model, device, preset)
        with usage_errors():
            settings = postprocessed(diarizer.postprocess, postprocess, clustering, **tuned).with_room_for(*wanted)
            speaker_range(diarizer.speaker_limit(preset, settings), *wanted)
        voices = diarizer.enrolled(named, preset=preset, postprocess=settings)

        def job(recording: Recording, progress: Progress) -> Diarization:
            number = recording.num_speakers if oracle_num_speakers else num_speakers
            if oracle_num_speakers and number is None:
                warn("no manifest gives the number of speakers: it is estimated", stacklevel=2)
            result = diarizer(
                **recording.heard(channel),
                preset=preset,
                num_speakers=number,
                min_speakers=min_speakers,
                max_speakers=max_speakers,
                exclusive=exclusive,
                enroll=voices,
                postprocess=settings,
                progress=progress,
            )
            assert result.origin is not None
            asked = {**result.origin.settings, "channel": channel}  # of a window, only that channel was handed over
            origin = replace(result.origin, settings=asked)
            return replace(result, uri=composed(recording.name), origin=origin).shift(recording.offset_s)

        return job

    raise typer.Exit(run(inputs, results, load, only=only, shard=part, quiet=quiet))


def _window(start: float | None, end: float | None, inputs: list[str]) -> dict[str, Any]:
    """Return the window from ``--start`` to ``--end`` as fields of a recording."""
    if start is None and end is None:
        return {}
    if any(each == "-" or Path(each).is_fifo() for each in inputs):
        raise InputError("--start and --end need a file, not a pipe")
    first = start or 0.0
    if end is not None and end <= first:
        raise InputError(f"--end must be after --start, got {first:g} to {end:g} s")
    return {"offset_s": first, "duration_s": None if end is None else end - first}


def _shard(text: str) -> tuple[int, int]:
    """Parse I/N: the number of this part, and the number of parts."""
    number, slash, shards = text.partition("/")
    if not (slash and number.isdecimal() and shards.isdecimal() and 1 <= int(number) <= int(shards)):
        raise InputError(f"--shard must be I/N with I from 1 to N, such as 1/4, got {text!r}")
    return int(number), int(shards)
