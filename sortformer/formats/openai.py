"""Who said what as OpenAI's transcriptions have it, ``response_format="diarized_json"``: for programs that read these.

    {"task": "transcribe", "duration": s, "text": str, "segments": [{"type": "transcript.text.segment", "id": str,
     "start": s, "end": s, "text": str, "speaker": str}]}

as their reference has it ("Create transcription", the diarized transcription object). Times are seconds, in whole
milliseconds. Speakers have the names of the result, and not ``A``, ``B``, ...
"""

import json
from collections.abc import Iterable

from sortformer.annotation import Diarization
from sortformer.formats.passages import Said
from sortformer.formats.segments import segments

__all__ = ["format"]


def format(recording: Diarization, words: Iterable[Said]) -> str:
    """Return one JSON document of the :func:`~sortformer.formats.segments.segments` that words make.

    Raises:
        InputError: when an item is no word as ``assign_speakers`` gives it.
    """
    spoken = list(segments(recording, words))
    found = {
        "task": "transcribe",
        "duration": recording.duration,
        "text": " ".join(segment.words for segment in spoken),
        "segments": [
            {
                "type": "transcript.text.segment",
                "id": f"seg_{number:03}",
                "start": segment.start,
                "end": segment.end,
                "text": segment.words,
                "speaker": segment.speaker,
            }
            for number, segment in enumerate(spoken, start=1)
        ],
    }
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"
