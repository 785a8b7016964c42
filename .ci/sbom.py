"""Writes what dpmpn is made of where it is installed, as CycloneDX JSON: `python .ci/sbom.py FILE`.

The package bundles nothing of others: what it runs with is what is installed beside it, and that is listed.
"""

import json
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# What is used; not what only tests need.
EXTRAS = ("draw", "excel", "plot", "rdf", "serve", "sql", "tensorboard")


def bill(root: str = "dpmpn", extras: tuple[str, ...] = EXTRAS) -> dict[str, Any]:
    """A package and all it needs, directly or not, with the installed versions."""
    needs: dict[str, set[str]] = {}
    found: dict[str, Distribution] = {}
    waiting = [(canonicalize_name(root), frozenset(extras))]
    seen = set()
    while waiting:
        name, chosen = waiting.pop()
        if (name, chosen) in seen:
            continue
        seen.add((name, chosen))
        try:
            found.setdefault(name, distribution(name))
        except PackageNotFoundError:  # of an extra that is not installed
            continue
        for text in found[name].requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or any(
                requirement.marker.evaluate({"extra": extra}) for extra in ("", *chosen)
            ):
                needed = canonicalize_name(requirement.name)
                needs.setdefault(name, set()).add(needed)
                waiting.append((needed, frozenset(requirement.extras)))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": _component(found[root])},
        "components": [_component(found[name]) for name in sorted(found) if name != root],
        "dependencies": [
            {
                "ref": _reference(found[name]),
                "dependsOn": sorted(
                    _reference(found[n]) for n in needs.get(name, ()) if n in found and n != name
                ),
            }
            for name in sorted(found)
        ],
    }


def _reference(package: Distribution) -> str:
    return f"pkg:pypi/{canonicalize_name(package.name)}@{package.version.replace('+', '%2B')}"


def _component(package: Distribution) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "application" if package.name == "dpmpn" else "library",
        "bom-ref": _reference(package),
        "name": package.name,
        "version": package.version,
        "purl": _reference(package),
    }
    licence = package.metadata.get("License-Expression")
    return made | ({"licenses": [{"expression": licence}]} if licence else {})


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(bill(), indent=2) + "\n", "utf-8")
