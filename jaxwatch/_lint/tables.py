"""Sets of names."""


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())
