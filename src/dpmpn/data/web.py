"""The web: requests over HTTP and nothing else, and downloads, whose files are there whole or not at all.

Redirects stay on the web, and passwords are for their own origin alone. A download is resumed after a break, tried
again and checked: by hand, since pooch 1.9 (with requests) begins at the first byte again after each break and after
Ctrl-C, has no limit to what a server sends, tries again what is not there, and does not wait as long as a busy server
asks; of what is done here it would only compare the checksum.
"""

import base64
import http.client
import re
import ssl
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.error import HTTPError, URLError

from dpmpn.errors import DataError
from dpmpn.files import continued, put_in_place, remove, sha256_of
from dpmpn.files.held import TEMPORARY_SUFFIX, is_own

_AUTHORIZATION = "Authorization"
PAUSES = (1.0, 2.0, 4.0, 8.0)  # seconds between tries that brought nothing new
TIMEOUT = 30.0  # seconds without a byte
_LONGEST_PAUSE = 60.0  # however long a server asks to wait
_CHUNK = 1 << 16
_TRY_AGAIN = (408, 425, 429, 500, 502, 503, 504)
_RANGE_NOT_THERE = 416


def web_request(
    url: str, headers: dict[str, str], authorization: str | None = None, data: bytes | None = None
) -> urllib.request.Request:
    """A request; `authorization` is a header for the origin of this address alone."""
    request = urllib.request.Request(url, data, {"User-Agent": "dpmpn", **headers})
    if authorization is not None:
        request.add_unredirected_header(_AUTHORIZATION, authorization)
    return request


def open_web(request: urllib.request.Request, timeout: float) -> Any:
    """The response to a request, over HTTP or HTTPS: no files, no FTP."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _WebOnly(),
    ):
        opener.add_handler(handler)
    return opener.open(request, timeout=timeout)


def split_password(url: str) -> tuple[str, str | None]:
    """A web address without user and password, and the header that carries them; ValueError where it is none."""
    parts = urllib.parse.urlsplit(url)
    # A password that is not quoted may look like a port.
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        raise ValueError
    if "@" not in parts.netloc:
        return url, None
    pair = f"{urllib.parse.unquote(parts.username or '')}:{urllib.parse.unquote(parts.password or '')}"
    address = urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return address, "Basic " + base64.b64encode(pair.encode("utf-8")).decode("ascii")


class _WebOnly(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """The request to the new address."""
        if not newurl.lower().startswith(("http://", "https://")):
            raise HTTPError(req.full_url, code, f"Redirection to url '{newurl}' is not allowed", headers, fp)
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        authorization = req.unredirected_hdrs.get(_AUTHORIZATION)
        if request is not None and authorization is not None and _origin(newurl) == _origin(req.full_url):
            request.add_unredirected_header(_AUTHORIZATION, authorization)
        return request


def _origin(url: str) -> tuple[str, str]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.netloc


class NotThere(DataError):
    """The server has no such file."""


class _Dropped(Exception):
    """What may go better the next time."""

    def __init__(self, reason: str, seconds: float = 0.0, first_contact: bool = False) -> None:
        super().__init__(reason)
        self.seconds, self.first_contact = seconds, first_contact


class Remote(NamedTuple):
    """A file to download, and what it must be."""

    url: str
    bytes: int
    sha256: str
    authorization: str | None = None  # a header for this origin alone


def download(remote: Remote, target: Path, progress: Callable[[int], None]) -> None:
    """Download a file; `progress` is called with how many bytes are there.

    What has come lies beside it as `.<name>.partial` until it is whole, and the next call goes on from there.
    """
    partial = target.with_name(f".{target.name}{TEMPORARY_SUFFIX}")
    if not is_own(partial):
        remove(partial)
    found = ""
    for _ in range(2):  # a wrong checksum may come from a part that an earlier call left
        _complete(remote, partial, progress)
        found = sha256_of(partial)
        if found == remote.sha256:
            put_in_place(partial, target)
            return
        remove(partial)
    raise DataError(
        f"{remote.url} is not the file it should be: its SHA-256 is {found} instead of {remote.sha256}; "
        "it was thrown away, so fetch it from elsewhere with --mirror"
    )


def _complete(remote: Remote, partial: Path, progress: Callable[[int], None]) -> None:
    """Try until all bytes are there; only tries that bring nothing new are counted."""
    validator, most, failures = None, _size(partial), 0
    if most > remote.bytes:
        remove(partial)
        most = 0
    while _size(partial) < remote.bytes:
        try:
            # The validator is not kept for the next call: the checksum decides, and another server may go on.
            with _open(remote, _size(partial), validator) as response:
                validator = _validator(response) or validator
                _receive(remote, response, partial, progress)
        except _Dropped as dropped:
            failures = 0 if _size(partial) > most else failures + 1
            if failures > len(PAUSES) or (dropped.first_contact and not most and not _size(partial)):
                raise DataError(_given_up(remote, partial, dropped)) from dropped
            most = max(most, _size(partial))
            time.sleep(max(dropped.seconds, PAUSES[max(failures - 1, 0)]))


def _given_up(remote: Remote, partial: Path, dropped: _Dropped) -> str:
    kept = _size(partial)
    advice = "check the network or the proxy settings, or give another address with --mirror"
    if kept:
        advice = f"{kept:,} of {remote.bytes:,} bytes are kept, and the same command continues from there"
    return f"cannot download {remote.url}: {dropped}; {advice}"


def _open(remote: Remote, start: int, validator: str | None) -> http.client.HTTPResponse:
    headers = {}
    if start:
        headers["Range"] = f"bytes={start}-"
        if validator:
            headers["If-Range"] = validator
    try:
        request = web_request(remote.url, headers, remote.authorization)
        response: http.client.HTTPResponse = open_web(request, TIMEOUT)
        return response
    except HTTPError as error:
        raise _refusal(remote, error) from error
    except URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            raise DataError(
                f"the certificate of {remote.url} is not trusted ({error.reason.verify_message}); check this machine's "
                "clock and certificates, or give another address with --mirror"
            ) from error
        raise _Dropped(
            _cause(error.reason), first_contact=not isinstance(error.reason, TimeoutError)
        ) from error
    except (http.client.InvalidURL, ValueError) as error:
        raise DataError(f"{remote.url} is not a web address ({error}); check --mirror") from error
    except (OSError, http.client.HTTPException) as error:
        raise _Dropped(_cause(error)) from error


def _refusal(remote: Remote, error: HTTPError) -> Exception:
    """What an answer other than success means."""
    error.close()
    if error.code in (404, 410):
        return NotThere(f"{remote.url} is not there (HTTP {error.code}); give another address with --mirror")
    if error.code in _TRY_AGAIN:
        wait = str(error.headers.get("Retry-After", ""))
        seconds = min(float(wait), _LONGEST_PAUSE) if wait.isdecimal() else 0.0
        return _Dropped(f"the server answers HTTP {error.code} {error.reason}", seconds)
    if error.code == _RANGE_NOT_THERE:
        return _WrongSize(remote, "fewer")
    if 300 <= error.code < 400:
        return DataError(f"{remote.url} is not followed further: {error.reason}; check --mirror")
    return DataError(
        f"{remote.url} may not be read (HTTP {error.code} {error.reason}); give another address with --mirror"
    )


class _WrongSize(DataError):
    def __init__(self, remote: Remote, found: object) -> None:
        super().__init__(
            f"{remote.url} is not the file it should be: it has {found} bytes instead of {remote.bytes:,}; "
            "fetch it from elsewhere with --mirror"
        )


def _receive(
    remote: Remote, response: http.client.HTTPResponse, partial: Path, progress: Callable[[int], None]
) -> None:
    start = _start(remote, response, _size(partial))
    announced = re.fullmatch(r"\d{1,18}", response.headers.get("Content-Length", ""))
    if announced and start + int(announced[0]) != remote.bytes:
        raise _WrongSize(remote, f"{start + int(announced[0]):,}")
    with continued(partial, start) as file:
        _copy(remote, response, file, start, progress)
    if _size(partial) < remote.bytes:
        raise _Dropped("the connection broke off")


def _start(remote: Remote, response: http.client.HTTPResponse, wanted: int) -> int:
    """Where the bytes that follow belong; a server that knows no ranges sends all of them."""
    if response.status != 206:
        return 0
    span = re.fullmatch(r"bytes (\d{1,18})-\d{1,18}/(\d{1,18}|\*)", response.headers.get("Content-Range", ""))
    if span is None or int(span[1]) != wanted:
        raise DataError(
            f"{remote.url} is sent from another place than asked for; give another address with --mirror"
        )
    if span[2] not in ("*", str(remote.bytes)):
        raise _WrongSize(remote, f"{int(span[2]):,}")
    return wanted


def _copy(
    remote: Remote,
    response: http.client.HTTPResponse,
    file: IO[bytes],
    position: int,
    progress: Callable[[int], None],
) -> None:
    announced = "Content-Length" in response.headers
    progress(position)
    # Where no length is announced, reading on shows whether there is more than there should be.
    while position < remote.bytes or not announced:
        try:
            chunk = response.read1(_CHUNK)
        except (OSError, http.client.HTTPException) as error:
            raise _Dropped(_cause(error)) from error
        if not chunk:
            return
        position += len(chunk)
        if position > remote.bytes:
            file.truncate(0)
            raise _WrongSize(remote, "more")
        file.write(chunk)
        file.flush()  # what has come survives the end of the process, however it ends
        progress(position)


def _validator(response: http.client.HTTPResponse) -> str | None:
    """What says that a later part is of the same file; weak tags do not."""
    tag = response.headers.get("ETag", "")
    return tag if tag.startswith('"') else response.headers.get("Last-Modified")


def _cause(error: object) -> str:
    if isinstance(error, TimeoutError):
        return f"nothing came for {TIMEOUT:.0f} seconds"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    return str(error) or type(error).__name__


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
