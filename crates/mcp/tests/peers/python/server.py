"""The server under test, and the official client's connections to it."""

import asyncio
import contextlib
import logging
import os
import pathlib
import queue
import re
import shlex
import signal
import subprocess
import tempfile
import threading
import unittest
from collections.abc import AsyncIterator

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

import processes

# The program that is tested.
PROGRAM = os.environ["DSH_SUBPROCESS_PROGRAM"]

# The client reports what it meets when a test cancels it or ends its server, which is what the test is about.
logging.getLogger("mcp").setLevel(logging.CRITICAL)

# How long an answer may take, in seconds, so that a defect ends in a failure.
PATIENCE = 90.0

# The variable that marks a server and whatever it starts.
OF_SERVER = "PEER_SERVER"

# The variable that marks what one command starts.
OF_COMMAND = "PEER_COMMAND"

# What a host has in its environment and no command may see.
SECRETS = {
    "OPENAI_API_KEY": "secret-of-openai",
    "ANTHROPIC_AUTH_TOKEN": "secret-of-anthropic",
    "AWS_SECRET_ACCESS_KEY": "secret-of-aws",
    "GITHUB_TOKEN": "secret-of-github",
    "DSH_PEER": "secret-of-this-product",
}


def marking(mark: str, script: str) -> str:
    """The script as a command whose processes all have the mark, the shell included."""
    return f"{OF_COMMAND}={mark} exec bash -c {shlex.quote(script)}"


class HttpServer:
    """A server that listens on a free port of the loopback address."""

    def __init__(self, mark: str, directory: pathlib.Path, *arguments: str) -> None:
        self.token_file = directory / "token"
        self.process = subprocess.Popen(
            [PROGRAM, "mcp", "--http", "127.0.0.1:0", "--token-file", self.token_file, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=os.environ | SECRETS | {OF_SERVER: mark},
            cwd=directory,
        )
        self._diagnostics: list[bytes] = []
        self._announced: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        # Somebody has to read them for as long as the server lives.
        self._reader = threading.Thread(target=self._read_diagnostics, daemon=True)
        self._reader.start()
        url = self._announced.get(timeout=processes.BOUND)
        if url is None:
            self.process.wait()
            raise AssertionError(f"the server told no address: {self.diagnostics()}")
        self.url = url
        self.token = self.token_file.read_text(encoding="ascii").strip()

    def _read_diagnostics(self) -> None:
        for line in self.process.stderr:
            self._diagnostics.append(line)
            if found := re.search(rb"127\.0\.0\.1:(\d+)", line):
                self._announced.put(f"http://127.0.0.1:{int(found[1])}/mcp")
        self._announced.put(None)

    def diagnostics(self) -> str:
        """What the server has written to its standard error so far."""
        return b"".join(self._diagnostics).decode(errors="replace")

    @property
    def authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def stop(self) -> int:
        """Asks the server to end, and returns its exit status."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=processes.BOUND)
        finally:
            self.process.kill()
            self.process.wait()
            self._reader.join()
            self.process.stderr.close()


class Connection(unittest.IsolatedAsyncioTestCase):
    """One way to reach the server. A test that ends leaves nothing of its servers behind."""

    # How the client negotiates; `auto` is its default.
    mode = "auto"

    def setUp(self) -> None:
        self.mark = processes.new_mark()
        scratch = tempfile.TemporaryDirectory(prefix="peer-")
        self.addCleanup(scratch.cleanup)
        self.directory = pathlib.Path(scratch.name)

    async def asyncSetUp(self) -> None:
        # The runner's debug mode reports every step that takes long, and on a busy machine many do.
        asyncio.get_running_loop().set_debug(False)

    async def asyncTearDown(self) -> None:
        await processes.until_gone(self.mark)

    def connect(self, **options) -> contextlib.AbstractAsyncContextManager[Client]:
        """A session of its own, with a client that was given these options."""
        raise NotImplementedError

    async def server_pid(self) -> int:
        """The server's process."""
        program = os.path.realpath(PROGRAM)
        for pid in await processes.until_present(self.mark):
            with contextlib.suppress(OSError):
                if os.path.realpath(f"/proc/{pid}/exe") == program:
                    return pid
        raise AssertionError("no process with the server's program has its mark")


class Stdio(Connection):
    """A server of its own for each session, started by the client."""

    def parameters(self) -> StdioServerParameters:
        return StdioServerParameters(
            command=PROGRAM,
            args=["mcp"],
            env=SECRETS | {OF_SERVER: self.mark},
            cwd=self.directory,
        )

    @contextlib.asynccontextmanager
    async def connect(self, **options) -> AsyncIterator[Client]:
        with (self.directory / "stderr").open("a") as complaints:
            transport = stdio_client(self.parameters(), errlog=complaints)
            async with Client(transport, mode=self.mode, read_timeout_seconds=PATIENCE, **options) as client:
                yield client


class StdioWithHandshake(Stdio):
    """The same with the `initialize` handshake of the protocol's older versions."""

    mode = "legacy"


class Http(Connection):
    """One server for all sessions of a test."""

    def setUp(self) -> None:
        super().setUp()
        self.server = HttpServer(self.mark, self.directory)

    async def asyncTearDown(self) -> None:
        self.assertEqual(self.server.stop(), 128 + signal.SIGTERM, "the server's exit status after SIGTERM")
        await super().asyncTearDown()

    @contextlib.asynccontextmanager
    async def connect(self, **options) -> AsyncIterator[Client]:
        bound = httpx2.Timeout(processes.BOUND, read=2 * PATIENCE)
        async with httpx2.AsyncClient(headers=self.server.authorization, timeout=bound) as http:
            transport = streamable_http_client(self.server.url, http_client=http)
            async with Client(transport, mode=self.mode, read_timeout_seconds=PATIENCE, **options) as client:
                yield client


class HttpWithHandshake(Http):
    """The same with the `initialize` handshake of the protocol's older versions."""

    mode = "legacy"
