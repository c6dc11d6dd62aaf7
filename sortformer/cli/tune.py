"""``sortformer tune``: post-processing tuned on recordings with references."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sortformer.annotation import Turns
from sortformer.cli.console import bar, say, usage_errors
from sortformer.cli.options import Channel, Clustering, Device, Model, ProtocolName
from sortformer.cli.recordings import namesakes, once, recordings
from sortformer.cli.results import check_out
from sortformer.cli.settings import as_options, loaded
from sortformer.errors import InputError, counted, listed
from sortformer.evaluate import truth_in
from sortformer.intervals import Regions, clipped
from sortformer.manifests import is_manifest
from sortformer.metrics.protocol import protocol_named

if TYPE_CHECKING:
    from sortformer.estimates import Probabilities

__all__ = ["tune"]


def tune(
    inputs: Annotated[
        list[str], typer.Argument(metavar="FILES|DIRS", help="Recordings, folders of recordings, or manifests.")
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="MODEL", help="Folder for the model with the tuned settings.")
    ],
    reference: Annotated[
        Path | None,
        typer.Option(metavar="FILE|DIR", help="References, as for score; manifests name their own."),
    ] = None,
    uem: Annotated[
        Path | None, typer.Option(metavar="FILE|DIR", help="UEM file or folder: score only its regions.")
    ] = None,
    protocol: ProtocolName = "full",
    model: Model = None,
    device: Device = "auto",
    channel: Channel = None,
    preset: Annotated[str | None, typer.Option(help="Tune for streams at this latency: 30s, 10s, ...")] = None,
    clustering: Clustering = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing model.")] = False,
) -> None:
    """Find the post-processing that gives the lowest DER.

    It is tuned on your recordings with references. Writes the model with these settings as its own, and prints the gain
    with a confidence interval. Evaluate on other recordings. If the model clusters by voice and processes recordings
    whole, the distance is searched, too, given at least two recordings, unless --clustering sets it.
    """
    with usage_errors():
        chosen = protocol_named(protocol)
    check_out(out, overwrite, folder=True)
    found = once(recording for argument in inputs for recording in recordings(argument))
    if refused := list(namesakes(found).values()):
        raise refused[0]
    truth, regions = _truth(inputs, reference, uem)
    if absent := [recording.id for recording in found if recording.id not in truth]:
        about = f", only for {listed(sorted(truth))}" if truth else ""
        raise InputError(
            f"{reference or 'the manifest'} has no reference for {listed(absent)}{about}: use the same names, or leave "
            "these recordings out"
        )
    if uem is not None and (absent := [recording.id for recording in found if recording.id not in regions]):
        raise InputError(f"{uem} has no regions for {listed(absent)}: add them, or leave the recordings out")

    from sortformer import checkpoint
    from sortformer.inference import OFFLINE, preset_of
    from sortformer.tune import tune as search
    from sortformer.tune import voices_by_distance

    diarizer = loaded(model, device, preset, clustering)
    whole = preset_of(diarizer.model.config, preset) == OFFLINE
    with bar(quiet=False) as shown:
        task = shown.add_task("running the model", total=len(found))
        probabilities, voices, own = {}, {}, diarizer.postprocess.clustering
        for recording in found:
            if clustering is None and own is not None and whole:
                voices[recording.id] = voices_by_distance(diarizer, **recording.heard(channel))
                probabilities[recording.id] = voices[recording.id][own.threshold]
            else:
                probabilities[recording.id] = diarizer.probabilities(**recording.heard(channel), preset=preset)
            shown.advance(task)
        tuned = search(
            probabilities,
            {recording.id: tuple(truth[recording.id]) for recording in found},
            diarizer.postprocess,
            by_distance=voices,
            uem={each.id: _parts(regions.get(each.id), each.offset_s, probabilities[each.id]) for each in found},
            starts_s={each.id: each.offset_s for each in found},
            protocol=chosen,
            progress=lambda stage, done, total: shown.update(task, description=stage, completed=done, total=total),
        )
    spread = tuned.spread()
    checkpoint.save(out, diarizer.model, tuned.postprocess, licence=diarizer.licence)
    interval = f" (95 % interval: {100 * spread[0]:.2f} to {100 * spread[1]:.2f})" if spread else ""
    say(
        f"DER ({chosen}) on {counted(len(found), 'recording')}: "
        f"{100 * tuned.before.der.rate:.2f} % before, {100 * tuned.after.der.rate:.2f} % after; "
        f"gain {100 * tuned.gain:.2f} points{interval}"
    )
    if not spread:
        say("warning: with one recording, neither the uncertainty nor the gain on others is known: give more")
    say(f"the model with these settings is in {out}: use it with --model {out}")
    typer.echo(as_options(tuned.postprocess))


def _truth(
    inputs: list[str], reference: Path | None, uem: Path | None
) -> tuple[dict[str, Turns], dict[str, Regions | None]]:
    """Return turns, and UEM regions if any, by recording: from the reference, else from the manifests."""
    if reference is None and not all(is_manifest(argument) for argument in inputs):
        raise InputError("tuning needs references: give --reference, or only manifests with 'rttm_filepath'")
    sides = [truth_in(place, uem) for place in ([reference] if reference is not None else inputs)]
    turns = {uri: found for side in sides for uri, found in side.turns.items()}
    return turns, {uri: parts for side in sides for uri, parts in (side.uem or {}).items()}


def _parts(given: Regions | None, offset_s: float, heard: Probabilities) -> Regions:
    """Return the scored regions of a window, in the time of its file: the UEM's, or all of it."""
    end_s = offset_s + heard.duration
    return clipped(((offset_s, end_s),) if given is None else given, offset_s, end_s)
