"""Small text files: prices of features or of errors, as JSON, YAML or CSV."""

import json
from pathlib import Path
from typing import Any

from emsco.exceptions import FileError, InvalidPricesError, MissingDependencyError, shown

DELIMITERS = ",;\t|"


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


_MAX_BYTES = 2**20


def read_text(path: Path) -> str:
    """Return the text of a small UTF-8 file."""
    try:
        if path.exists() and not path.is_file():
            kind = "folder" if path.is_dir() else "pipe or a device"
            raise FileError(f"{path} is a {kind}; give a file.")
        if path.stat().st_size > _MAX_BYTES:
            raise FileError(f"{path} is larger than {_MAX_BYTES >> 20} MiB: is it a price list?")
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise FileError(f"there is no file {path}.") from error
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8.") from error
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}.") from error


def from_json(text: str, path: Path) -> Any:
    """Return the contents of JSON text; a key that comes twice is refused."""

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        check_keys([key for key, _ in pairs], path)
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=mapping)
    except FileError:
        raise
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path} is not JSON: {error}.") from error


def check_keys(keys: list[Any], path: Path) -> None:
    """Raise if a key of a mapping comes twice: one of the two values would be lost."""
    seen: set[Any] = set()
    for key in keys:
        if key in seen:
            raise FileError(f"{path} has the key {shown(key)} twice; remove one of them.")
        seen.add(key)


def from_yaml(text: str, path: Path) -> Any:
    """Return the contents of YAML text; aliases, and a key that comes twice, are refused."""
    try:
        import yaml
    except ImportError as error:
        raise MissingDependencyError("YAML files need PyYAML: pip install 'emsco[cli]'.") from error
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
            raise FileError(f"{path} uses aliases (*name), which a price list does not need; write them out.")
        nodes = [yaml.compose(text, Loader=yaml.SafeLoader)]
        while nodes:
            node = nodes.pop()
            if isinstance(node, yaml.MappingNode):
                check_keys([key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)], path)
                nodes += [value for _, value in node.value]
            elif isinstance(node, yaml.SequenceNode):
                nodes += node.value
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path} is not YAML: {first_line(error)}") from error


def number_of(value: Any, what: str) -> float:
    """Return a value of a file as a number."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidPricesError(f"the {what} is {shown(value)}; a price is a number of at least 0.") from None
