"""A service with keys and TLS in a process of its own, its clients, and a way to it that loses messages."""

import ssl

import httpx

from certificate import certificate
from onepass.client import Client
from onepass.service.keys import make_key
from patience import PATIENCE
from service_process import RunningService, write_settings

WAIT = 600.0  # seconds: nothing is joined while it is asked


class Service:
    """A service that is running, as docs/client.md has it. client: made with its address and its key, unless told
    otherwise."""

    def __init__(self, folder):
        key, lines = make_key(["admin"])
        reading, more = make_key(["read"])
        pem, private = certificate(folder)
        options = ("--certificate", str(pem), "--private-key", str(private))
        path = write_settings(
            folder, top='arms = ["sport", "economy", "culture"]', keys=f"{lines}\n{more}\n", wait=WAIT
        )
        path.write_text(path.read_text().replace('"hour", "mobile", "new"', '"morning", "mobile", "one"'))
        self.tls = ssl.create_default_context(cafile=pem)
        self.served = RunningService(folder / "data", path, key=key, options=options, verify=self.tls)
        self.url, self.key, self.reading, self.pem = self.served.address, key, reading, pem

    def client(self, kind=Client, **options):
        given = {"url": self.url, "loop": "news", "key": self.key, "ca_file": self.pem, "timeout": PATIENCE, **options}
        return kind(**given)


class Lossy(httpx.BaseTransport):
    """A way to the service that loses requests, or answers to what was served, or finds the service stopping: what
    `losing` says of a message's number. sent: how many messages there were."""

    def __init__(self, service, losing):
        self._inner, self._losing, self.sent = httpx.HTTPTransport(verify=service.tls), losing, 0

    def handle_request(self, request):
        self.sent += 1
        what = self._losing(self.sent)
        if what == "request":
            raise httpx.ConnectError("refused")
        if what == "stopping":
            return httpx.Response(503, json={"error": {"code": "LogUnavailable", "message": "it stops"}})
        if what == "proxy":
            return httpx.Response(502, text="<h1>Bad gateway</h1>")
        answer = self._inner.handle_request(request)
        if what == "answer":
            answer.read()
            raise httpx.ReadTimeout("no answer")
        return answer

    def close(self):
        self._inner.close()
