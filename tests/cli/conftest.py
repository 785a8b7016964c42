"""A command line called in this process, and one tiny trained run that the commands are tried on."""

from pathlib import Path

import pytest
from tiny_family import FACTS, HELD_OUT, TINY, Call, Result

from dpmpn.cli.main import run


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    def call_it(*arguments: object) -> Result:
        with pytest.raises(SystemExit) as ended:
            run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Result(int(ended.value.code or 0), out, err)

    return call_it


@pytest.fixture(scope="session")
def family(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of triples."""
    folder = tmp_path_factory.mktemp("data") / "family"
    folder.mkdir()
    for split, facts in {"train": FACTS, **HELD_OUT}.items():
        (folder / f"{split}.txt").write_text("".join("\t".join(fact) + "\n" for fact in facts))
    return folder


@pytest.fixture(scope="session")
def trained(family: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a trained run."""
    out = tmp_path_factory.mktemp("runs") / "family"
    with pytest.raises(SystemExit) as ended:
        run(["train", str(family), "--out", str(out), *TINY])
    assert not ended.value.code
    return out
