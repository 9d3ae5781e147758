"""Who may speak to the server over HTTP, asked without any client of the protocol."""

import json
import os
import pathlib
import stat
import subprocess
import tempfile
import unittest

import httpx2

import processes
from server import OF_SERVER, PROGRAM, HttpServer

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "nobody", "version": "1"},
    },
}


class HttpIsGuarded(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="peer-")
        self.addCleanup(scratch.cleanup)
        self.directory = pathlib.Path(scratch.name)
        self.server = HttpServer(processes.new_mark(), self.directory)
        self.addCleanup(self.server.stop)
        self.http = httpx2.Client(timeout=processes.BOUND)
        self.addCleanup(self.http.close)

    def post(self, headers: dict[str, str], authorized: bool = True, **body) -> httpx2.Response:
        accepting = {"Accept": "application/json, text/event-stream"}
        authorization = self.server.authorization if authorized else {}
        if not body:
            body = {"json": INITIALIZE}
        with self.http.stream("POST", self.server.url, headers=accepting | authorization | headers, **body) as response:
            return response

    def test_the_token_gets_in(self):
        self.assertEqual(self.post({}).status_code, 200)

    def test_without_the_token_or_with_another_nobody_gets_in(self):
        wrong = [
            {},
            {"Authorization": "Bearer " + "0" * len(self.server.token)},
            {"Authorization": f"Bearer {self.server.token}x"},
            {"Authorization": f"Bearer {self.server.token[:-1]}"},
            {"Authorization": f"Basic {self.server.token}"},
            {"Authorization": "Bearer"},
        ]
        for headers in wrong:
            with self.subTest(headers):
                response = self.post(headers, authorized=False)
                self.assertEqual(response.status_code, 401)
                self.assertTrue(response.headers["WWW-Authenticate"].startswith("Bearer"))

    def test_no_method_and_no_path_gets_around_the_token(self):
        for method in ("GET", "DELETE", "PUT", "OPTIONS"):
            with self.subTest(method):
                self.assertEqual(self.http.request(method, self.server.url).status_code, 401)

    def test_a_page_of_another_origin_is_refused(self):
        for origin in ("http://example.com", "null", "http://127.0.0.1.example.com"):
            with self.subTest(origin):
                self.assertEqual(self.post({"Origin": origin}).status_code, 403)

    def test_another_name_for_the_host_is_refused(self):
        for host in ("example.com", "127.0.0.1.example.com", "example.com:80"):
            with self.subTest(host):
                self.assertIn(self.post({"Host": host}).status_code, (403, 421))

    def test_a_body_that_is_no_message_is_refused_and_the_server_goes_on(self):
        for content in (b"", b"{", b"[]", b"\xff\xfe", b'{"jsonrpc": "2.0"}'):
            with self.subTest(content):
                response = self.post({"Content-Type": "application/json"}, content=content)
                self.assertGreaterEqual(response.status_code, 400)
                self.assertLess(response.status_code, 500)
        self.assertEqual(self.post({}).status_code, 200)

    def test_a_session_that_is_not_there_is_not_found(self):
        headers = {"Mcp-Session-Id": "no-such-session", "MCP-Protocol-Version": "2025-11-25"}
        request = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        self.assertEqual(self.post(headers, json=request).status_code, 404)

    def test_clients_of_older_versions_are_sent_nothing_but_messages(self):
        # The empty events that 2025-11-25 begins streams with are no JSON, and some clients of older versions end there.
        for version in ("2025-03-26", "2025-06-18"):
            with self.subTest(version):
                request = INITIALIZE | {"params": INITIALIZE["params"] | {"protocolVersion": version}}
                accepting = {"Accept": "application/json, text/event-stream"}
                answer = self.http.post(
                    self.server.url, headers=accepting | self.server.authorization, json=request
                ).text
                data = [line.removeprefix("data:") for line in answer.splitlines() if line.startswith("data:")]
                self.assertEqual([json.loads(each)["id"] for each in data], [1])

    def test_the_token_is_for_the_owner_alone(self):
        mode = self.server.token_file.stat().st_mode
        self.assertEqual(stat.S_IMODE(mode), 0o600)
        self.assertGreaterEqual(len(self.server.token), 43)
        self.assertNotIn(self.server.token, self.server.diagnostics())


class TokenFile(unittest.TestCase):
    def test_a_token_that_others_can_read_is_refused(self):
        with tempfile.TemporaryDirectory(prefix="peer-") as scratch:
            file = pathlib.Path(scratch) / "token"
            file.write_text("a" * 64, encoding="ascii")
            for mode in (0o644, 0o640, 0o604):
                with self.subTest(oct(mode)):
                    file.chmod(mode)
                    self.refuse(file)

    def test_a_link_to_a_token_is_refused(self):
        with tempfile.TemporaryDirectory(prefix="peer-") as scratch:
            file = pathlib.Path(scratch) / "token"
            file.write_text("a" * 64, encoding="ascii")
            file.chmod(0o600)
            link = file.with_name("link")
            link.symlink_to(file)
            self.refuse(link)

    def refuse(self, file: pathlib.Path) -> None:
        refused = subprocess.run(
            [PROGRAM, "mcp", "--http", "127.0.0.1:0", "--token-file", file],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=processes.BOUND,
            env=os.environ | {OF_SERVER: processes.new_mark()},
        )
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn(str(file), refused.stderr.decode())
