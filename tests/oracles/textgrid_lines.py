"""Read a TextGrid in the long format, with one value per line."""

__all__ = ["tiers"]


def tiers(text: str) -> list[tuple[str, list[tuple[float, float, str]]]]:
    """The name of each interval tier, and start, end (seconds) and text of all of its intervals."""
    found: list[tuple[str, list[tuple[float, float, str]]]] = []
    start = end = 0.0
    for line in text.split("\n"):
        key, _, value = line.strip().partition(" = ")
        if key == "name":
            found.append((value[1:-1].replace('""', '"'), []))
        elif key == "xmin":
            start = float(value)
        elif key == "xmax":
            end = float(value)
        elif key == "text":
            found[-1][1].append((start, end, value[1:-1].replace('""', '"')))
    return found
