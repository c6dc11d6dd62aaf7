"""A voice, the unit of a bank: a person at one speed, with formants scaled by one factor."""

from dataclasses import dataclass

__all__ = ["Voice"]


@dataclass(frozen=True, slots=True)
class Voice:
    """One voice: a speaker at a speed, with formants scaled by a factor (either sounds like another person)."""

    speaker: str
    speed: float
    formants: float
    corpus: str
    gender: str

    @property
    def name(self) -> str:
        """Its name in tables of voices: "speaker@speed", followed by "@formants" if they were scaled."""
        return f"{self.speaker}@{self.speed:g}" + (f"@{self.formants:g}" if self.formants != 1 else "")
