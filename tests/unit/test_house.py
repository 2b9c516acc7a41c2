"""The house rules that a tool can check: imports, sizes, language floors, no foreign paths."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from importlinter import cli

ROOT = Path(__file__).parents[2]
PACKAGES = ("gateway", "broker", "accounting", "sbatch_shim")
MAX_LINES_OF_FUNCTION = 50
MAX_LINES_OF_MODULE = 450
MAX_NINETIETH_PERCENTILE = 30

# Names that a contract must carry as soon as the module exists (contract id, key: names).
PROMISED = {
    ("grammar-only", "forbidden_modules"): (
        "sbatch_shim.shim",
        "sbatch_shim.interact",
        "sbatch_shim.line",
        "sbatch_shim.child",
        "sbatch_shim.seldom",
        "sbatch_shim.install",
        "sbatch_shim.login",
        "sbatch_shim.completion",
        "sbatch_shim.manpages",
    ),
    ("pure", "source_modules"): ("broker.stage.plan",),
    ("adapters", "protected_modules"): (
        "broker.providers.ec2",
        "broker.providers.local",
        "broker.run.ssh",
        "broker.run.local",
        "broker.stage.s3",
        "broker.stage.sftp",
        "broker.stage.sides",
        "gateway.store.sql",
        "gateway.passthrough.cli",
    ),
}

FOREIGN = re.compile(
    rb"/work/|\.\./shared|/root/|pypi\.org|pythonhosted|/opt/(?:wheels|pypi)|bash_jobs",
)


def modules(*packages: str) -> Iterator[Path]:
    for package in packages or PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


def exists(module: str) -> bool:
    path = ROOT / module.replace(".", "/")
    return path.with_suffix(".py").exists() or path.is_dir()


def lines_of(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


@cache
def functions() -> list[tuple[str, int]]:
    """Name and lines of each function; a docstring is not counted, a table inside is."""
    return [
        (f"{name_of(path)}:{node.name}", lines_of(node) - sum(map(lines_of, docstring)))
        for path in modules()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for docstring in [node.body[:1] if ast.get_docstring(node) else []]
    ]


def test_import_contracts_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert cli.lint_imports(no_cache=True, no_logo=True) == cli.EXIT_STATUS_SUCCESS


def test_contracts_name_every_promised_module_that_exists() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    contracts = {contract["id"]: contract for contract in settings["contracts"]}
    missing = [
        f"{module} in {key} of contract {identity!r}"
        for (identity, key), promised in PROMISED.items()
        for module in promised
        if exists(module) and module not in contracts[identity][key]
    ]
    assert missing == []


def test_no_function_is_longer_than_fifty_lines() -> None:
    assert [item for item in functions() if item[1] > MAX_LINES_OF_FUNCTION] == []


def test_nine_functions_in_ten_have_at_most_thirty_lines() -> None:
    lengths = sorted(lines for _, lines in functions())
    assert not lengths or lengths[len(lengths) * 9 // 10] <= MAX_NINETIETH_PERCENTILE


def test_no_module_is_longer_than_450_lines() -> None:
    lengths = [(name_of(path), len(path.read_bytes().splitlines())) for path in modules()]
    assert [item for item in lengths if item[1] > MAX_LINES_OF_MODULE] == []


FACES = {"gateway/sdk/__init__.py"}
"""What programs import: `from gateway import sdk`; it loads nothing by itself."""


def test_init_files_are_empty() -> None:
    full = {name_of(p) for p in modules() if p.name == "__init__.py" and p.read_bytes()}
    assert full <= FACES


def test_modules_say_what_they_know() -> None:
    silent = [
        name_of(path)
        for path in modules()
        if path.read_bytes() and not ast.get_docstring(tree_of(path))
    ]
    assert silent == []


def test_the_architecture_page_names_every_room() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    rooms = {p.parent / p.stem if p.stem != "__init__" else p.parent for p in modules()}
    rooms = {room for room in rooms if len(room.relative_to(ROOT).parts) == 2}
    assert sorted(room.name for room in rooms if f"`{room.name}`" not in page) == []


def test_commands_are_python_3_9() -> None:
    for path in modules("sbatch_shim"):
        ast.parse(path.read_bytes(), name_of(path), feature_version=(3, 9))


def test_the_agent_is_python_3_6() -> None:
    agent = [p for p in modules("broker") if name_of(p).startswith("broker/run/agent")]
    for path in agent:
        tree = ast.parse(path.read_bytes(), name_of(path), feature_version=(3, 6))
        features = [
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "__future__"
            for alias in node.names
        ]
        assert "annotations" not in features, name_of(path)


def catches_all(handler: ast.ExceptHandler) -> bool:
    """Whether it takes every exception and keeps it: passing it on after tidying up is not that."""
    kinds = {"Exception", "BaseException"}
    caught = ast.walk(handler.type) if handler.type else [ast.Name("Exception")]
    named = {node.id for node in caught if isinstance(node, ast.Name)}
    last = handler.body[-1]
    passes_on = isinstance(last, ast.Raise) and last.exc is None
    return bool(named & kinds) and not passes_on


def test_exceptions_are_caught_broadly_only_at_borders() -> None:
    broad = [
        f"{name_of(path)}:{node.lineno}"
        for path in modules()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ExceptHandler) and catches_all(node)
        if "# border" not in path.read_text().splitlines()[node.lineno - 1]
    ]
    assert broad == []


def test_the_product_names_no_place_of_the_workshop() -> None:
    product = [p for package in PACKAGES for p in (ROOT / package).rglob("*") if p.is_file()]
    product = [p for p in product if "__pycache__" not in p.parts]
    assert [name_of(p) for p in product if FOREIGN.search(p.read_bytes())] == []


def test_the_lock_has_hashes_and_no_addresses() -> None:
    text = (ROOT / "requirements.lock").read_text()
    pinned = re.findall(r"^[a-z0-9][^\s=]*==\S+", text, re.M)
    assert len(pinned) > 50
    assert text.count("==") <= text.count("--hash=sha256:")
    assert not re.search(r"://|--(?:index|extra-index|find-links|trusted-host)", text)
