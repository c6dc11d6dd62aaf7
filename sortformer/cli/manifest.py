"""``sortformer manifest``: create manifests and voice banks from folders and corpora, and check manifests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sortformer.cli.console import say, usage_errors
from sortformer.cli.results import check_out
from sortformer.errors import InputError, counted
from sortformer.formats.names import in_unicode
from sortformer.manifests import Draft, read, write

if TYPE_CHECKING:
    from sortformer.manifests.voices import Utterance

__all__ = ["manifest"]

manifest = typer.Typer(
    name="manifest",
    help="Create and check lists of recordings with references.\n\nThese manifests are JSON lines, as in NeMo.",
    no_args_is_help=True,
)

Out = Annotated[Path, typer.Option("--out", "-o", metavar="JSONL", help="Manifest to write.")]
OutDir = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the manifests, one per split.")]
Bank = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for segments.tsv, the voice bank.")]
Corpus = Annotated[Path, typer.Argument(metavar="CORPUS", help="Folder of the recordings, as unpacked.")]
Partial = Annotated[bool, typer.Option("--partial", help="Continue without missing recordings.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")]


@manifest.command()
def folder(
    place: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of the recordings; subfolders are searched, too.")
    ],
    out: Out,
    reference: Annotated[
        Path | None,
        typer.Option(metavar="DIR|FILE", help="References that score reads, if not RTTM beside the recordings."),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """From a folder of recordings and RTTM with the same names."""
    from sortformer.manifests.folder import from_folder

    drafts = from_folder(place, reference)
    _write({out: drafts}, overwrite)
    without = [draft.entry.id for draft in drafts if draft.entry.rttm is None and draft.turns is None]
    if without:
        hint = "" if reference or len(without) < len(drafts) else "; --reference DIR also reads TextGrids, STM, ..."
        say(f"note: {counted(len(without), 'recording')} without a reference, the first is {without[0]!r}{hint}")
    whole = [draft.entry.id for draft in drafts if draft.entry.uem is None]
    if 0 < len(whole) < len(drafts):
        say(f"note: {counted(len(whole), 'recording')} without a UEM, to be scored whole, the first is {whole[0]!r}")


@manifest.command()
def kaldi(
    place: Annotated[Path, typer.Argument(metavar="DIR", help="Data directory with wav.scp.")],
    out: Out,
    overwrite: Overwrite = False,
) -> None:
    """From a Kaldi data directory.

    It holds wav.scp with rttm, or with segments and utt2spk.
    """
    from sortformer.manifests.kaldi import from_kaldi

    _write({out: from_kaldi(place)}, overwrite)


@manifest.command()
def lhotse(
    recordings: Annotated[Path, typer.Argument(metavar="RECORDINGS|CUTS", help="recordings.jsonl[.gz], or cuts.")],
    out: Out,
    supervisions: Annotated[
        Path | None, typer.Argument(metavar="SUPERVISIONS", help="supervisions.jsonl[.gz]; cuts have their own.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """From lhotse's recordings and supervisions, or its cuts."""
    from sortformer.manifests.lhotse import from_lhotse

    _write({out: from_lhotse(recordings, supervisions)}, overwrite)


@manifest.command()
def ami(
    corpus: Corpus,
    setup: Annotated[Path, typer.Option(metavar="DIR", help="AMI-diarization-setup, with only_words/rttms and uems.")],
    out: OutDir,
    mic: Annotated[
        str, typer.Option(metavar="mix-headset|sdm", help="Microphone; sdm: the first table microphone.")
    ] = "mix-headset",
    partial: Partial = False,
    overwrite: Overwrite = False,
) -> None:
    """AMI meetings: train, dev and test.

    The splits are those of Full-corpus-ASR, the references only_words.
    """
    from sortformer.manifests.ami import MICROPHONES, from_ami

    with usage_errors():
        if mic not in MICROPHONES:
            raise InputError(f"there is no microphone {mic!r}; choose one of {', '.join(MICROPHONES)}")
    found = from_ami(corpus, setup, mic, partial)  # pyright: ignore[reportArgumentType]
    if found.without:
        say(f"note: the corpus has no {MICROPHONES[mic]} of {', '.join(found.without)}: left out")
    _write(_files(out, found.splits), overwrite)


@manifest.command()
def callhome(
    corpus: Corpus,
    rttm: Annotated[Path, typer.Option(metavar="FILE|DIR", help="fullref.rttm of the SRE 2000 key.")],
    out: OutDir,
    partial: Partial = False,
    overwrite: Overwrite = False,
) -> None:
    """CALLHOME calls (LDC2001S97): part1 and part2.

    part1 is for adaptation, part2 for evaluation.
    """
    from sortformer.manifests.callhome import from_callhome

    _write(_files(out, from_callhome(corpus, rttm, partial)), overwrite)


@manifest.command()
def voxconverse(
    corpus: Corpus,
    rttm: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the annotations, with dev and test in it.")],
    out: OutDir,
    partial: Partial = False,
    overwrite: Overwrite = False,
) -> None:
    """VoxConverse: dev and test."""
    from sortformer.manifests.voxconverse import from_voxconverse

    _write(_files(out, from_voxconverse(corpus, rttm, partial)), overwrite)


@manifest.command()
def librispeech(corpus: Corpus, out: Bank, overwrite: Overwrite = False) -> None:
    """LibriSpeech as a bank of voices for `sortformer train`."""
    from sortformer.manifests.voices import from_librispeech

    _bank(out, from_librispeech(corpus), overwrite)


@manifest.command()
def voices(
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help="Manifest of recordings to take voices from.")],
    out: Bank,
    dev: Annotated[
        Path | None, typer.Option(metavar="MANIFEST", help="The same for the dev split of the bank.")
    ] = None,
    name: Annotated[str, typer.Option(help="Prefix of the speakers' names, which marks their corpus.")] = "own",
    shortest: Annotated[float, typer.Option(metavar="SECONDS", min=0.0, help="Leave out shorter segments.")] = 1.0,
    shared_names: Annotated[
        bool, typer.Option("--shared-names", help="A name, but not speaker_0 etc., is one person in all recordings.")
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """A bank of voices from recordings with references.

    It contains the segments in which only one person speaks.
    """
    from sortformer.manifests.voices import voices_of

    found = voices_of(read(train), "train", name, shortest, shared_names)
    if dev is not None:
        found += voices_of(read(dev), "dev", name, shortest, shared_names)
    _bank(out, found, overwrite)


@manifest.command()
def check(
    manifests: Annotated[list[Path], typer.Argument(metavar="MANIFEST...", help="Manifests, one per split.")],
    quick: Annotated[bool, typer.Option("--quick", help="Read only the headers of recordings.")] = False,
) -> None:
    """Find missing, broken, silent and duplicate recordings.

    Duplicates include those across splits. Also prints statistics; the exit code is 1 if there are problems.
    """
    from sortformer.manifests.check import check as look

    found = look(manifests, listen=not quick)
    for path, statistics in found.statistics.items():
        typer.echo(f"{in_unicode(str(path))}: {statistics}")
    for doubt in found.doubts:
        say(f"note: {doubt}")
    for problem in found.problems:
        say(f"problem: {problem}")
    if found.problems:
        say(f"{counted(len(found.problems), 'problem')} found")
        raise typer.Exit(1)


def _files(out: Path, splits: Mapping[str, Iterable[Draft]]) -> dict[Path, Iterable[Draft]]:
    return {out / f"{split}.jsonl": drafts for split, drafts in splits.items()}


def _write(manifests: Mapping[Path, Iterable[Draft]], overwrite: bool) -> None:
    for path in manifests:
        check_out(path, overwrite)
    for path, drafts in manifests.items():
        entries = write(path, drafts, overwrite=overwrite)
        typer.echo(f"{in_unicode(str(path))}: {counted(len(entries), 'recording')}")


def _bank(out: Path, utterances: list[Utterance], overwrite: bool) -> None:
    from sortformer.manifests.voices import write_bank

    check_out(out / "segments.tsv", overwrite)
    path = write_bank(out, utterances, overwrite=overwrite)
    speakers = len({each.speaker for each in utterances})
    hours = sum(each.end_s - each.start_s for each in utterances) / 3600
    said = f"{counted(speakers, 'voice')}, {counted(len(utterances), 'utterance')}, {hours:.2f} h"
    typer.echo(f"{in_unicode(str(path))}: {said}")
