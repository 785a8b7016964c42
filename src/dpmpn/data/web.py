"""The web: HTTP and nothing else, redirects on the web only, and passwords for their own origin alone."""

import base64
import urllib.parse
import urllib.request
from typing import Any
from urllib.error import HTTPError

_AUTHORIZATION = "Authorization"


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
