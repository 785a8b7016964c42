"""The plan of the house as an SVG picture: floors of rooms, and a line for every import between two of them."""

from _generators.house import FLOORS, between_rooms, floor_of, sign, size
from dpmpn.render.markup import element, text_width, title

WIDTH, FLOOR_HEIGHT, ROOM_HEIGHT, MARGIN, GAP = 900, 84, 38, 10, 12
NAMES_WIDTH = 140  # the column with the names of the floors
FONT, SMALL = 13, 11

Box = tuple[float, float, float]  # left, top, width


def house_plan() -> str:
    """The picture, for a Markdown page; its colours are the page's, so it can be read in light and dark."""
    boxes = _boxes()
    height = len(FLOORS) * FLOOR_HEIGHT + 2 * MARGIN
    parts = [
        *(_floor(number) for number in range(len(FLOORS))),
        *(_line(boxes, a, b, count) for (a, b), count in sorted(drawn_lines().items())),
        *(_room(room, box) for room, box in boxes.items()),
    ]
    described = title("The rooms of dpmpn, floor by floor, and which room imports which")
    drawn = element(
        "svg", described + "".join(parts), xmlns="http://www.w3.org/2000/svg", class_="house", role="img",
        viewBox=f"0 0 {WIDTH} {height}", font_family="sans-serif", fill="currentColor",
    )  # fmt: skip
    return f"<div>\n{drawn}\n</div>"


def drawn_lines() -> dict[tuple[str, str], int]:
    """The imports that are drawn: not those to the two lowest floors, nor those past a room that leads there, too."""
    lines = {pair: n for pair, n in between_rooms().items() if floor_of(pair[1]) < len(FLOORS) - 2}

    def leads_there(a: str, b: str) -> bool:
        between = (c for first, c in lines if first == a and floor_of(a) < floor_of(c) < floor_of(b))
        return any((c, b) in lines for c in between)

    return {(a, b): n for (a, b), n in lines.items() if not leads_there(a, b)}


def _boxes() -> dict[str, Box]:
    """Where each room stands: those of a floor side by side, as wide as their names ask."""
    boxes = {}
    space = WIDTH - NAMES_WIDTH - MARGIN
    for number, floor in enumerate(FLOORS):
        wanted = [text_width(room, FONT, bold=True) + 30 for room in floor.rooms]
        spare = max(0.0, (space - sum(wanted) - GAP * (len(wanted) - 1)) / len(wanted))
        widths = [width + min(spare, 90) for width in wanted]
        left = NAMES_WIDTH + (space - sum(widths) - GAP * (len(widths) - 1)) / 2
        for room, width in zip(floor.rooms, widths, strict=True):
            boxes[room] = (left, MARGIN + number * FLOOR_HEIGHT + (FLOOR_HEIGHT - ROOM_HEIGHT) / 2, width)
            left += width + GAP
    return boxes


def _floor(number: int) -> str:
    top = MARGIN + number * FLOOR_HEIGHT
    ground = element(
        "line", x1=MARGIN, x2=WIDTH - MARGIN, y1=top + FLOOR_HEIGHT, y2=top + FLOOR_HEIGHT,
        stroke="currentColor", stroke_opacity="0.25",
    )  # fmt: skip
    name = element(
        "text", FLOORS[number].name, x=MARGIN, y=top + FLOOR_HEIGHT / 2 + 4, font_size=SMALL, opacity="0.75"
    )
    return ground + name


def _room(room: str, box: Box) -> str:
    left, top, width = box
    middle = left + width / 2
    modules = f"{size(room)} modules" if size(room) > 1 else "1 module"
    return element(
        "g",
        title(f"{room}: {sign(room)}")
        + element(
            "rect", x=left, y=top, width=width, height=ROOM_HEIGHT, rx=5, class_="room", stroke="currentColor"
        )
        + element(
            "text", room, x=middle, y=top + 17, font_size=FONT, font_weight="bold", text_anchor="middle"
        )
        + element(
            "text", modules, x=middle, y=top + 31, font_size=SMALL, text_anchor="middle", opacity="0.75"
        ),
    )


def _line(boxes: dict[str, Box], importer: str, imported: str, count: int) -> str:
    """A line from the lower edge of the importing room to the upper edge of the other."""
    (left, top, width), (to_left, to_top, to_width) = boxes[importer], boxes[imported]
    start, end = left + width / 2, to_left + to_width / 2
    low, bend = top + ROOM_HEIGHT, (to_top - top - ROOM_HEIGHT) / 2
    path = f"M{start:.1f} {low:.1f}C{start:.1f} {low + bend:.1f} {end:.1f} {to_top - bend:.1f} {end:.1f} {to_top:.1f}"
    return element(
        "path", title(f"{importer} imports {imported}, {count} times"), d=path, fill="none",
        stroke="currentColor", stroke_opacity="0.45", stroke_width=min(1 + count / 8, 4),
    )  # fmt: skip


def rooms_table() -> str:
    """The rooms from the top floor down with the signs on their doors, as a Markdown table."""
    rows = ["| Floor | Room | What it is for |", "|---|---|---|"]
    for floor in FLOORS:
        names = (floor.name, *("" for _ in floor.rooms[1:]))
        for name, room in zip(names, floor.rooms, strict=True):
            rows.append(f"| {name} | `{room.replace('.', '/')}` | {sign(room)} |")
    return "\n".join(rows)
