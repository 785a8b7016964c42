"""What the package needs is written down as it is: bounds, lowest and tested versions, a bill of materials."""

import importlib.util
import re
import tomllib
from importlib.metadata import version
from types import ModuleType
from typing import Any

import pytest
import yaml
from docs_reading import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
USED = ("draw", "excel", "plot", "rdf", "serve", "sql", "tensorboard")  # extras of those who use it


def pins(file: str) -> dict[str, Version]:
    lines = (ROOT / file).read_text("utf-8").splitlines()
    parts = [line.split("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(name): Version(pinned) for name, pinned in parts}


def direct() -> dict[str, Requirement]:
    texts = [
        *PROJECT["dependencies"],
        *(text for extra in USED for text in PROJECT["optional-dependencies"][extra]),
    ]
    return {canonicalize_name(r.name): r for r in map(Requirement, texts) if r.name != "dpmpn"}


def test_the_lowest_versions_are_those_that_the_bounds_allow() -> None:
    lowest = {name: Version(re.search(r">=([\d.]+)", str(r.specifier))[1]) for name, r in direct().items()}
    assert pins("constraints-lowest.txt") == lowest


def test_the_tested_versions_are_within_the_bounds() -> None:
    tested = pins("constraints.txt")
    assert not [name for name, requirement in direct().items() if tested[name] not in requirement.specifier]


def test_every_python_that_is_named_is_tested() -> None:
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    assert workflow["jobs"]["tests"]["strategy"]["matrix"]["python"] == named
    assert PROJECT["requires-python"] == f">={named[0]}"


@pytest.fixture(scope="module")
def sbom() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sbom", ROOT / ".ci" / "sbom.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_bill_lists_what_is_installed(sbom: ModuleType) -> None:
    made = sbom.bill()
    listed = {canonicalize_name(c["name"]): c["version"] for c in made["components"]}
    assert direct().keys() <= listed.keys()
    assert {"markupsafe", "llvmlite", "starlette", "pydantic"} <= listed.keys()  # needed by others
    assert not {"pytest", "sphinx", "pykeen"} & listed.keys()
    assert all(version(name) == found for name, found in listed.items())
    references = {c["bom-ref"] for c in [*made["components"], made["metadata"]["component"]]}
    assert references == {d["ref"] for d in made["dependencies"]}
    assert all(set(d["dependsOn"]) <= references for d in made["dependencies"])
    assert tuple(sbom.EXTRAS) == USED
