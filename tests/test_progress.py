"""How far work is, shown in a terminal, a notebook and a log."""

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from dpmpn import progress
from dpmpn.progress import Bar, Lines, Meter, Notebook, meter_for_python
from dpmpn.train.trainer import Progress


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(progress.time, "monotonic", lambda: self.now)


class Display:
    """What a notebook shows at one place, as `IPython.display` would."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def HTML(self, text: str) -> str:
        return text

    def display(self, html: str, display_id: bool) -> "Display":
        assert display_id and not self.shown  # once; it is updated from then on
        self.update(html)
        return self

    def update(self, html: str) -> None:
        self.shown.append(html)


def test_a_log_has_a_line_every_five_seconds_and_one_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, lines = Clock(monkeypatch), []
    with Meter("asked", Lines(lines.append)) as meter:
        for position in range(0, 13):
            meter.show_speed(position, 12)
            clock.now += 1
    assert lines == [
        "asked 5 of 12: 1.0/s, ETA 0:07",
        "asked 10 of 12: 1.0/s, ETA 0:02",
        "asked 12 of 12: 1.0/s, ETA 0:00",
    ]


def test_each_stage_has_a_speed_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, lines = Clock(monkeypatch), []
    with Meter("asked", Lines(lines.append)) as meter:
        meter.show_speed(0, 100, "measured")
        clock.now += 10
        meter.show_speed(100, 100, "measured")
        meter.show_speed(50, 150, "asked")  # goes on where an earlier run ended
        clock.now += 5
        meter.show_speed(100, 150, "asked")
    assert lines == ["measured 100 of 100: 10.0/s, ETA 0:00", "asked 100 of 150: 10.0/s, ETA 0:05"]


def test_a_terminal_has_a_bar_that_goes_at_the_end() -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=100)
    with Meter("[asked]", Bar(console)) as meter:
        meter.show(30, 120, "ETA [1:00]")
    assert "30/120" in written.getvalue() and "[asked]" in written.getvalue()  # a name is no markup
    assert "ETA [1:00]" in written.getvalue()
    assert written.getvalue().rstrip().endswith("\x1b[2K")  # the line is wiped


def test_a_notebook_has_one_bar_that_moves_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, display = Clock(monkeypatch), Display()
    with Meter("trained <b>", Notebook(display)) as meter:
        for position in range(0, 1001):
            meter.show_speed(position, 1000)
            clock.now += 0.01
    assert 'value="1000" max="1000"' in display.shown[-2]
    assert "trained &lt;b&gt; 1,000 of 1,000" in display.shown[-2]
    assert "ETA 0:00" in display.shown[-2]
    assert display.shown[-1] == ""
    assert len(display.shown) < 60  # some for each second, not one for each step


def test_python_shows_a_bar_where_somebody_watches_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, screen = Clock(monkeypatch), io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with meter_for_python("asked") as meter:
        meter.show(1, 10)
        clock.now += 0.4
        meter.show(2, 10)
        assert not screen.getvalue()
        clock.now += 0.2
        meter.show(3, 10)
    assert "3/10" in screen.getvalue()
    before = screen.getvalue()
    with meter_for_python("asked", shown=False) as meter:
        clock.now += 10
        meter.show(3, 10)
    assert screen.getvalue() == before


def test_python_is_silent_where_nobody_watches(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock(monkeypatch)
    with meter_for_python("asked") as meter:
        clock.now += 10
        meter.show(3, 10)
    assert capsys.readouterr() == ("", "")


def test_a_notebook_is_known_by_its_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, display = Clock(monkeypatch), Display()
    shell: Any = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    with meter_for_python("asked") as meter:
        clock.now += 10
        meter.show(3, 10)
    assert "asked 3 of 10" in display.shown[0]
    shell = SimpleNamespace()  # IPython in a terminal
    with meter_for_python("asked") as meter:
        clock.now += 10
        meter.show(4, 10)
    assert len(display.shown) == 2


def test_training_says_its_loss_speed_and_best_mrr(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, lines = Clock(monkeypatch), []
    told = Progress(640, 1280, 1.5, 2.3456, 321.0, 61.0, 0.4321)
    with Meter("trained", Lines(lines.append), lines.append) as meter:
        clock.now += 6
        meter.show_training(told)
        meter.show_training(
            Progress(640, 1280, 1.5, float("nan"), 321.0, 61.0, 0.4321, "validation MRR 0.4321")
        )
    assert lines == [
        "trained 640 of 1,280: epoch 1.50, loss 2.346, 321 queries/s, ETA 1:01, best MRR 0.4321",
        "epoch 1.50: loss -, 321 queries/s, validation MRR 0.4321",
    ]
