"""What to expect on new rows, read from a file."""

from emsco.scoring.outlook import Outlook
from emsco.storage.container import damaged
from emsco.storage.fields import Fields


def outlook_from_json(record: Fields, n_classes: int) -> Outlook:
    """Return what to expect on new rows; the counts must fit each other."""
    by_class = {name: _counts(record, name) for name in ("n_right", "n_labelled", "n_rows")}
    paid, n_paid = record.numbers("paid"), _counts(record, "n_paid")
    n_right, n_labelled, n_rows = by_class.values()
    sound = (
        len(n_right) == len(n_labelled) == len(n_rows) == n_classes
        and all(0 <= a <= b <= c for a, b, c in zip(n_right, n_labelled, n_rows, strict=True))
        and 0 < len(paid) == len(n_paid)
        and min(paid) >= 0
        and sum(n_paid) == sum(n_rows) > 0
    )
    if not sound:
        raise damaged("the outlook does not add up")
    return Outlook(n_right, n_labelled, n_rows, tuple(paid), n_paid)


def _counts(record: Fields, name: str) -> tuple[int, ...]:
    items = record.items(name)
    if not all(type(n) is int and 0 <= n <= 2**53 for n in items):
        record.refuse(name, "counts")
    return tuple(items)
