"""Web addresses: passwords kept out of them, redirects followed on the web only."""

import base64
import urllib.parse
import urllib.request
from typing import Any

from dpmpn.errors import DataError


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects on the web only, and keeps the password for the host it was given for."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """The request to the new address."""
        target = urllib.parse.urlsplit(newurl)
        if target.scheme not in ("http", "https"):
            raise DataError(
                f"{req.host}: redirects to '{target.scheme}:', which is not followed; check the address"
            )
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None and (target.scheme, target.netloc) != (req.type, req.host):
            request.remove_header("Authorization")
        return request


def http_only() -> urllib.request.OpenerDirector:
    """Speaks HTTP and nothing else: no files, no FTP."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _SafeRedirects(),
    ):
        opener.add_handler(handler)
    return opener


def split_address(url: str) -> tuple[str, dict[str, str], str]:
    """The address without user and password, the header that carries them, and what can be shown of it."""
    try:
        parts = urllib.parse.urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
            raise ValueError
    except ValueError as error:
        raise DataError(
            "the address of a SPARQL endpoint begins with http:// or https:// and a host"
        ) from error
    headers = {}
    if parts.username is not None:
        pair = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
    address = urllib.parse.urlunsplit((parts.scheme, host, parts.path, parts.query, ""))
    return address, headers, urllib.parse.urlunsplit((parts.scheme, host, parts.path, "", ""))
