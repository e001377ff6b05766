"""The folders are layers: each imports only from those before it, imports inside functions included."""

import ast
from pathlib import Path

import pytest

import emsco

ROOT = Path(emsco.__file__).parent
LAYERS = (
    ("exceptions", "arrays", "checks", "drawing", "markup", "_compile", "_scalar"),
    ("data",),
    ("prices",),
    ("designs",),
    ("stages",),
    ("scoring",),
    ("search",),
    ("promises",),
    ("deployed",),
    ("metrics",),
    ("storage",),
    ("report",),
    ("service",),
    ("fitting",),
    ("cluster",),
    ("estimators",),
    ("datasets",),
    ("baselines",),
    ("experiments",),
    ("cli",),
    ("__main__",),
)
FOREIGN = {"_replace", "_getframe", "_get_param_names"}  # of namedtuples, of sys, of scikit-learn
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}
FILES = sorted(ROOT.rglob("*.py"))


def module_of(path: Path) -> tuple[str, ...]:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def imports(path: Path) -> set[tuple[str, ...]]:
    """The modules of ours that a file names in imports, wherever they stand; those for type checkers excepted."""
    found = set()
    tree = ast.parse(path.read_text())
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "emsco":
            base = tuple(node.module.split(".")[1:])
            found |= {base} if base else {(name.name,) for name in node.names}
        elif isinstance(node, ast.Import):
            found |= {tuple(name.name.split(".")[1:]) for name in node.names if name.name.split(".")[0] == "emsco"}
    return {module for module in found if module and module != ("__version__",)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_folder_imports_only_from_those_before_it(path):
    module = module_of(path)
    if not module or module == ("reference",):
        return
    above = [".".join(other) for other in imports(path) if LEVEL[other[0]] > LEVEL[module[0]]]
    assert not above, f"{'.'.join(module)} imports {above}, which come after it"


def test_every_folder_has_a_level():
    assert {module_of(path)[0] for path in FILES if module_of(path)} == {*LEVEL, "reference"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nobody_reads_a_private_attribute_of_another_object(path):
    """``self._x`` and ``cls._x`` are one's own; so are the private names of the classes in the same file.

    Foreign objects are another matter: a namedtuple's ``_replace``, the inside of scikit-learn's estimators that
    storage has to check.
    """
    tree = ast.parse(path.read_text())
    own = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and is_self(node.value)}
    own |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    own |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    read = {
        f"{ast.unparse(node)} (line {node.lineno})"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.endswith("__")
        if node.attr not in own and not is_self(node.value) and node.attr not in FOREIGN
    }
    names = {
        f"from {node.module} import {name.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("emsco")
        for name in node.names
        if name.name.startswith("_") and not name.name.endswith("__")
        if not (ROOT.parent / node.module.replace(".", "/") / f"{name.name}.py").exists()
    }
    assert not read | names


def is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def test_only_tests_import_the_reference():
    assert not [path for path in FILES if ("reference",) in imports(path)]


def is_kernel(path: Path) -> bool:
    return path.name.startswith("_") and path.name != "__init__.py"


def test_files_and_functions_are_short():
    lengths = {path: len(path.read_text().splitlines()) for path in FILES}
    long_files = {
        str(path.relative_to(ROOT)): n for path, n in lengths.items() if n > (550 if is_kernel(path) else 520)
    }
    long_functions = {}
    for path in FILES:
        if is_kernel(path):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                n_lines = body[-1].end_lineno - body[0].lineno + 1 if body else 0
                if n_lines > 60:
                    long_functions[f"{path.relative_to(ROOT)}:{node.name}"] = n_lines
    assert not long_files
    assert not long_functions
