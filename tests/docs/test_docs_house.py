"""The rooms of the package import each other only downwards, as the page on architecture says and draws."""

from graphlib import TopologicalSorter
from pathlib import Path
from xml.etree import ElementTree

import pytest
from _generators import house
from _generators.plan import drawn_lines, house_plan


def test_every_room_stands_on_one_floor() -> None:
    rooms = [room for floor in house.FLOORS for room in floor.rooms]
    assert len(rooms) == len(set(rooms))
    found = {house.room_of(module) for module in house.modules()} - {house.FRONT_DOOR}
    assert found == set(rooms), "name the room on its floor in docs/_generators/house.py"


def test_imports_go_down_only() -> None:
    """Those within functions, too: a room that needs one above it, now or later, stands on the wrong floor."""
    upwards = [
        f"{house.modules()[i.importer]}:{i.line} imports {i.imported}"
        for i in house.imports()
        if house.room_of(i.importer) != house.room_of(i.imported)
        and house.FRONT_DOOR not in (house.room_of(i.importer), house.room_of(i.imported))
        and house.floor_of(house.room_of(i.imported)) <= house.floor_of(house.room_of(i.importer))
    ]
    assert not upwards


def test_no_module_leads_back_to_itself() -> None:
    """Imports within functions count: a circle that they hide is a circle."""
    needs: dict[str, set[str]] = {}
    for found in house.imports():
        needs.setdefault(found.importer, set()).add(found.imported)
    assert list(TopologicalSorter(needs).static_order())  # a circle is a CycleError that names it


def test_nobody_enters_through_the_front_door() -> None:
    inside = {i.importer for i in house.imports() if i.imported == house.FRONT_DOOR}
    assert not inside, "import from the module itself"


def test_imports_are_read_where_they_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "__init__.py").touch()
    (tmp_path / "data" / "graph.py").write_text("import numpy\n")
    (tmp_path / "cli.py").write_text(
        "import dpmpn.model\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from dpmpn.data import graph\n"
        "def f():\n    from dpmpn.data import graph\n"
    )
    (tmp_path / "model.py").write_text("x = 1\n")
    monkeypatch.setattr(house, "PACKAGE", tmp_path)
    for read in (house.modules, house.imports):
        monkeypatch.setattr(house, read.__name__, read.__wrapped__)  # nothing is remembered
    assert house.between_rooms() == {("cli", "data"): 1, ("cli", "model"): 1}
    assert house.imports() == (
        house.Import("dpmpn.cli", "dpmpn.model", 1, is_deferred=False),
        house.Import("dpmpn.cli", "dpmpn.data.graph", 6, is_deferred=True),
    )


def test_the_plan_shows_every_room_and_line() -> None:
    tree = ElementTree.fromstring(house_plan())
    texts = [element.text for element in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert {room for floor in house.FLOORS for room in floor.rooms} <= set(texts)
    assert len(list(tree.iter("{http://www.w3.org/2000/svg}path"))) == len(drawn_lines())
    assert ("complete", "ask") in drawn_lines()
    assert ("cli", "models") not in drawn_lines()  # others lead there
