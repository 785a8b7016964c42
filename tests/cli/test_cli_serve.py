"""`dpmpn serve`: what is refused before anything is served."""

import importlib.util
import os
import socket
import tempfile
from pathlib import Path

import pytest
from tiny_family import Call

import dpmpn.serve.run


def test_a_missing_extra_says_how_to_get_it(
    call: Call, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr("dpmpn.cli.serve.find_spec", lambda name: None if name == "fastapi" else found(name))
    result = call("serve", trained)
    assert result.code == 2 and "pip install 'dpmpn[serve]'" in result.err


def test_a_port_that_is_taken(call: Call, trained: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = call("serve", trained, "--port", taken.getsockname()[1])
    assert result.code == 2 and "choose another --host or --port" in result.err


def test_what_a_killed_server_left_is_removed_by_any_other(
    call: Call, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(dpmpn.serve.run, "run", lambda guard, taken, stop, started: started())
    left = tmp_path / "dpmpn-held-long-ago"
    left.mkdir()
    os.utime(left, (0, 0))
    assert call("serve", trained, "--port", "0").code == 0
    assert not left.exists()


def test_a_folder_that_is_no_run(call: Call, tmp_path: Path) -> None:
    result = call("serve", tmp_path)
    assert result.code == 2 and "not the folder of a run" in result.err


@pytest.mark.parametrize("content", [b"", b"two words", b"\xff\xfe", "schlüssel".encode()])
def test_a_token_file_that_holds_none(call: Call, trained: Path, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    result = call("serve", trained, "--token-file", file)
    assert result.code == 2 and str(file) in result.err


def test_what_is_dangerous_is_said(
    call: Call, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dpmpn.serve.run, "run", lambda guard, taken, stop, started: started())
    file = tmp_path / "token"
    file.write_text("short\n")
    file.chmod(0o644)
    result = call("serve", trained, "--port", "0", "--token-file", file)
    assert result.code == 0 and "chmod 600" in result.err and "guessed" in result.err
    assert f"serving {trained} on http://127.0.0.1:" in result.out and "stopped" in result.out
    open_to_all = call("serve", trained, "--port", "0", "--host", "0.0.0.0")
    assert "protect it with --token-file" in open_to_all.err
    file.write_text("0123456789abcdef0123456789abcdef")
    file.chmod(0o600)
    assert not call("serve", trained, "--port", "0", "--token-file", file).err
