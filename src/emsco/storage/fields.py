"""JSON objects read field by field: a value of another kind, or out of range, is an error that names the field."""

from collections.abc import Iterator
from math import inf, isfinite
from typing import Any, NoReturn

from emsco.exceptions import shown
from emsco.storage.container import damaged


class Fields:
    """The fields of one JSON object.

    Parameters
    ----------
    value : Any
        What should be an object.
    name : str
        Where it is in the file.
    """

    def __init__(self, value: Any, name: str) -> None:
        if not isinstance(value, dict):
            raise damaged(f"{name} is {shown(value)}; wanted an object")
        self._value = value
        self._name = name

    def __iter__(self) -> Iterator[str]:
        return iter(self._value)

    def plain(self) -> dict[str, Any]:
        """Return the object as it is."""
        return dict(self._value)

    def raw(self, key: str) -> Any:
        """Return a field of any kind."""
        if key not in self._value:
            raise damaged(f"{self._name} has no {key}")
        return self._value[key]

    def refuse(self, key: str, wanted: str) -> NoReturn:
        """Raise the error of a field that is not what is wanted."""
        raise damaged(f"{self._name}.{key} is {shown(self.raw(key))}; wanted {wanted}")

    def number(self, key: str, least: float = -inf, most: float = inf) -> float:
        """Return a finite number."""
        value = self.raw(key)
        try:
            number = float(value) if _is_number(value) else inf
        except OverflowError:
            number = inf
        if not isfinite(number) or not least <= number <= most:
            self.refuse(key, f"a number from {least:g} to {most:g}")
        return number

    def whole(self, key: str, least: int = 0, most: int = 2**63 - 1) -> int:
        """Return a whole number."""
        value = self.raw(key)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self.refuse(key, f"a whole number from {least} to {most}")
        return int(value)

    def wholes(self, key: str, length: int) -> tuple[int, ...]:
        """Return a list of counts."""
        values = self.items(key, length)
        if not all(isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 2**53 for v in values):
            self.refuse(key, "counts")
        return tuple(values)

    def numbers(self, key: str, most: float = inf) -> tuple[float, ...]:
        """Return a list of finite numbers."""
        values = Fields({str(i): value for i, value in enumerate(self.items(key))}, f"{self._name}.{key}")
        return tuple(values.number(i, -most, most) for i in values)

    def flag(self, key: str) -> bool:
        """Return true or false."""
        value = self.raw(key)
        if not isinstance(value, bool):
            self.refuse(key, "true or false")
        return bool(value)

    def text(self, key: str) -> str:
        """Return text."""
        value = self.raw(key)
        if not isinstance(value, str):
            self.refuse(key, "text")
        return str(value)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        values = self.items(key)
        if not all(isinstance(value, str) for value in values):
            self.refuse(key, "a list of texts")
        return tuple(values)

    def items(self, key: str, length: int | None = None) -> list[Any]:
        """Return a list."""
        value = self.raw(key)
        if not isinstance(value, list) or (length is not None and len(value) != length):
            self.refuse(key, "a list" if length is None else f"a list of {length}")
        return list(value)

    def part(self, key: str) -> "Fields":
        """Return an object inside this one."""
        return Fields(self.raw(key), f"{self._name}.{key}")

    def parts(self, key: str) -> "list[Fields]":
        """Return a list of objects."""
        return [Fields(value, f"{self._name}.{key}[{i}]") for i, value in enumerate(self.items(key))]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
