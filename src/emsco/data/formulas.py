"""Cells of a CSV file that a spreadsheet would take for formulas."""

import re
from typing import Any

_FORMULA = r"^[=@+\-\t\r]"
_NUMBER = r"^[+-]?([0-9]+([.,][0-9]*)?|[.,][0-9]+)([eE][+-]?[0-9]+)?$"


def escaped_text(text: str) -> str:
    """Return text that a spreadsheet shows as it is: what it would take for a formula gets a leading apostrophe.

    Examples
    --------
    >>> [escaped_text(text) for text in ("=1+1", "@home", "-5.5", "well")]
    ["'=1+1", "'@home", '-5.5', 'well']
    """
    return f"'{text}" if re.search(_FORMULA, text) and not re.search(_NUMBER, text) else text


def escaped_columns(table: Any) -> Any:
    """Return an Arrow table whose names and cells of text are escaped."""
    import pyarrow
    from pyarrow import compute

    for i, field in enumerate(table.schema):
        if str(field.type) not in ("string", "large_string"):
            continue
        cells = table.column(i)
        risky = compute.and_(
            compute.match_substring_regex(cells, _FORMULA),
            compute.invert(compute.match_substring_regex(cells, _NUMBER)),
        )
        apostrophe, nothing = (pyarrow.scalar(text, field.type) for text in ("'", ""))
        quoted = compute.binary_join_element_wise(apostrophe, cells, nothing)
        table = table.set_column(i, field.name, compute.if_else(risky, quoted, cells))
    return table.rename_columns([escaped_text(name) for name in table.column_names])
