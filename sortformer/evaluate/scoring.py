"""Scoring of files or turns against references."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from sortformer.annotation import Turn, Turns
from sortformer.config.checks import by_recording
from sortformer.errors import InputError, listed, refusal
from sortformer.evaluate.errors import check_free, write_errors
from sortformer.evaluate.report import Report, Row
from sortformer.evaluate.sides import truth_in
from sortformer.formats import rttm
from sortformer.formats.gather import own_name, turns_in
from sortformer.formats.source import decoded
from sortformer.metrics.compared import compared
from sortformer.metrics.der import jer, speaker_counts
from sortformer.metrics.protocol import FULL, Protocol, protocol_named
from sortformer.metrics.region import Parts, scored_region
from sortformer.warned import warn

__all__ = ["STDIN", "score", "score_recordings"]

STDIN = Path("/dev/stdin")
"""Standard input, as a hypothesis in RTTM; it counts as a pipe even if it is a file."""


def score(
    reference: str | os.PathLike[str],
    hypothesis: str | os.PathLike[str],
    *,
    uem: str | os.PathLike[str] | None = None,
    protocol: str | Protocol = "full",
    baseline: str | os.PathLike[str] | None = None,
    errors: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> Report:
    """Score a hypothesis against a reference; these and the UEM are each a file or a folder of files.

    Turns are RTTM, or in another format that ``turns_in`` reads. The reference may also be a manifest of RTTM and UEM
    files; without a UEM, its durations define the scored parts. Recordings that are not in a UEM are not scored, as in
    dscore. A file without a turn means silence: in a folder, in the recording of its name; alone, in all recordings of
    the other side. A pipe without a turn is an error, because the sending command may have failed. ``baseline`` is
    another hypothesis, to compare with. ``errors`` is a folder for inspecting the errors (see ``evaluate.errors``), in
    which files are replaced only if ``overwrite`` is set.

    Raises:
        InputError: when an argument is not a path, a path is missing or broken, no turn comes through a pipe, a
            recording is on one side only, none is in the UEM, or a file cannot be written or exists.
        ConfigError: when the protocol is unknown.

    Warns:
        SortformerWarning: when a single hypothesis file without a turn is taken for silence and the reference has
            turns; when a reference is not in the UEM; or when a UEM has no part of a recording, or begins after the
            last turn of both sides and so may be that of another.
    """
    optional = ("" if given is None else given for given in (uem, baseline, errors))
    for given in (reference, hypothesis, *optional):
        if not isinstance(given, str | os.PathLike):
            raise InputError(
                f"score takes paths of files or folders, got {type(given).__name__}: "
                "pass turns to score_recordings, by the ids of their recordings"
            )
    chosen = protocol_named(protocol)
    truth = truth_in(reference, uem)
    paths = [Path(each) for each in (hypothesis, baseline) if each is not None]
    sides: list[Mapping[str, Turns]] = [_received() if path == STDIN else turns_in(path) for path in paths]
    _check_sent(Path(reference), truth.turns)
    for path, side in zip(paths, sides, strict=True):
        _check_sent(path, side)
        if not side and any(truth.turns.values()):
            silent = listed(sorted(truth.turns))
            warn(f"{path} has no turns: it counts as silence in {silent}", stacklevel=2)
    names = truth.turns or sides[0] or {own_name(Path(reference)): ()}
    references = truth.turns or dict.fromkeys(names, ())
    references, *sides = _listed_in(truth.uem, references, *(side or dict.fromkeys(names, ()) for side in sides))
    for path, side in zip(paths, sides, strict=True):
        silence = "" if path.is_dir() else " in a folder, as `diarize -o` writes it,"
        _check_same(references, side, truth.uem, str(reference), str(path), silence)
    if errors is not None:
        check_free(Path(errors), references, overwrite=overwrite)
    report, *others = (score_recordings(references, side, uem=truth.uem, protocol=chosen) for side in sides)
    report, hypotheses = replace(report, baseline=others[0] if others else None), sides[0]
    for row in report.rows:
        if row.uri in truth.windows or row.region.basis != "uem":
            continue
        if not row.region.parts:
            warn(f"nothing of {row.uri!r} is scored: its UEM has no part of it (the times are seconds)", stacklevel=2)
            continue
        last = max((turn.end for side in (references, hypotheses) for turn in side[row.uri]), default=math.inf)
        if row.region.parts[0][0] >= last:
            warn(
                f"the UEM of {row.uri!r} begins at {row.region.parts[0][0]:.2f} s, after the last turn of either side "
                f"({last:.2f} s): is it for this recording?",
                stacklevel=2,
            )
    if errors is not None:
        write_errors(Path(errors), report, references, hypotheses, overwrite=overwrite)
    return report


def score_recordings(
    references: Mapping[str, Turns],
    hypotheses: Mapping[str, Turns],
    *,
    uem: Mapping[str, Parts | None] | None = None,
    protocol: str | Protocol = FULL,
) -> Report:
    """Score diarizations or turns by recording id; the scored region is that of ``metrics.region``.

    Recordings that are not in the UEM are not scored. The parts of one in it may be None, which is as if there were no
    UEM for it.

    Raises:
        InputError: when an argument is not a mapping, a recording is on one side only, or none is in the UEM.
        ConfigError: when the protocol is unknown.

    Warns:
        SortformerWarning: when a reference is not in the UEM.
    """
    protocol = protocol_named(protocol)
    for name, given in (("references", references), ("hypotheses", hypotheses), ("uem", {} if uem is None else uem)):
        by_recording(name, given)
    references, hypotheses = _listed_in(uem, references, hypotheses)
    _check_same(references, hypotheses, uem, "the references", "the hypotheses")
    rows = []
    for uri in sorted(references):
        reference, hypothesis = references[uri], hypotheses[uri]
        region = scored_region(reference, hypothesis, None if uem is None else uem[uri])
        comparison = compared(reference, hypothesis, region.parts, protocol)
        jaccard = jer(reference, hypothesis, region.parts)
        speakers = speaker_counts(reference, hypothesis, region.parts)
        rows.append(Row(uri, comparison.total, jaccard, *speakers, region, comparison))
    return Report(protocol, tuple(rows))


def _received() -> dict[str, tuple[Turn, ...]]:
    """Return the turns from stdin: not from its path, which Windows lacks, and no system opens if it is a socket."""
    try:
        content = sys.stdin.buffer.read()
    except OSError as error:
        raise InputError(f"cannot read {STDIN}: {refusal(error)}") from error
    return rttm.parse(decoded(content, str(STDIN)), str(STDIN))


def _check_sent(path: Path, turns: Collection[str]) -> None:
    if not turns and (path == STDIN or not path.is_file()):
        raise InputError(
            f"no turns were received from {path}: check whether the command that should send them failed; "
            "for silence, give an empty file by its name"
        )


def _listed_in(
    uem: Collection[str] | None, references: Mapping[str, Turns], *hypotheses: Mapping[str, Turns]
) -> list[Mapping[str, Turns]]:
    """Leave out references that are not in a UEM, if there is one, with a warning, and the hypotheses for them."""
    if uem is None:
        return [references, *hypotheses]
    others = sorted(set(references) - set(uem))
    if len(others) == len(references):
        raise InputError(f"the UEM has no regions of {listed(others)}; add them, or score without it")
    if others:
        warn(f"not scored, as the UEM has no regions of them: {listed(others)}", stacklevel=3)
    sides = (references, *hypotheses)
    return [{uri: side[uri] for uri in side if uri in uem or uri not in references} for side in sides]


def _check_same(
    references: Collection[str],
    hypotheses: Collection[str],
    uem: Collection[str] | None,
    reference: str,
    hypothesis: str,
    silence: str = "",
) -> None:
    """Check that all references have a hypothesis, and all hypotheses that are in the UEM, if any, a reference."""
    missing, others = sorted(set(references) - set(hypotheses)), sorted(set(hypotheses) - set(references))
    if others and missing == sorted(references):
        raise InputError(
            f"{reference} is for {listed(missing)}, and {hypothesis} for {listed(others)}: "
            "a recording must have the same id on both sides"
        )
    if missing:
        misnamed = f" (no reference is for {listed(others)})" if others else ""
        raise InputError(
            f"missing in {hypothesis}{misnamed}: {listed(missing)} of {reference}; an empty file{silence} means silence"
        )
    if extra := [uri for uri in others if uem is None or uri in uem]:
        raise InputError(
            f"missing in {reference}: {listed(extra)} of {hypothesis}; add references (the first argument), copy the "
            "results that have one to a folder of their own, or give a UEM of what to score"
        )
