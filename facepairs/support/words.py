"""Wording that many messages share."""


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun: `1 image`, `1,200 images`, `2 people`.

    Args:
        number: How many.
        one: The noun in the singular.
        many: The noun in the plural, where that is not the singular with an s.
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"
