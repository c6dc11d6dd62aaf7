"""JSON messages of live sessions, as sent by the server and printed by the command line."""

from typing import Any

from sortformer.annotation import Diarization
from sortformer.formats.json import document, turns
from sortformer.streaming.session import Session
from sortformer.streaming.update import Update

__all__ = ["done_message", "update_message"]


def update_message(session: Session, update: Update) -> dict[str, Any]:
    """Return the message of an update: final and tentative turns, and who speaks at ``time_s``."""
    final, tentative = (
        turns(Diarization(found, session.duration_s, session.uri)) for found in (update.turns, update.tentative)
    )
    time_s, speaking = round(update.time_s, 3), list(update.speaking)
    return {"type": "update", "time_s": time_s, "final": final, "tentative": tentative, "speaking": speaking}


def done_message(session: Session, update: Update, result: Diarization) -> dict[str, Any]:
    """Return the last message: the last update, in which nobody is speaking any more, and the whole result."""
    return update_message(session, update) | {"type": "done", "result": document(result)}
