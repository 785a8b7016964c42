"""Links that somebody put into a folder before handing it over, each to a file or folder that must not be touched."""

import os
from pathlib import Path

FILES = (
    *("calibration.json", "metrics.jsonl", "config.json", "checkpoint.json", "best.json", "versions.json"),
    *(f".{name}.partial" for name in ("calibration.json", "checkpoint.json", "best.json", "metrics.jsonl")),
    *(f"best-{position:012}.safetensors" for position in (30, 40, 44)),
    *(f"checkpoint-{position:012}.safetensors" for position in (30, 40, 44)),
    *(f".checkpoint-{position:012}.safetensors.partial" for position in (30, 40, 44)),
    ".dpmpn-0123456789abcdef.partial",
)
WHY = ("explanation.txt", "explanation.json", "explanation.html", "pruned.dot", "full.dot", "nodes.csv")


class Victims:
    """Files and folders outside of the hostile folder, all named by links within it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.links: list[Path] = []

    def file(self, link: Path, *, hard: bool = False) -> None:
        """A file that a link leads to; what had the link's name becomes the victim's content, so that it is read."""
        victim = self.folder / f"{len(self.links):03}"
        victim.write_bytes(link.read_bytes() if link.exists() else b"precious")
        victim.chmod(0o600)
        link.unlink(missing_ok=True)
        os.link(victim, link) if hard else link.symlink_to(victim)
        self.links.append(link)

    def place(self, link: Path) -> None:
        """A folder that a link leads to."""
        victim = self.folder / f"{len(self.links):03}"
        victim.mkdir()
        (victim / "precious").write_bytes(b"precious")
        link.symlink_to(victim)
        self.links.append(link)

    def state(self) -> dict[str, tuple[int, bytes]]:
        """All that must stay as it is."""
        found = (path for path in self.folder.rglob("*") if path.is_file())
        return {str(path): (path.stat().st_mode, path.read_bytes()) for path in found}
