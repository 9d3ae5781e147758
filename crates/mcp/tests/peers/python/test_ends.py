"""Ends that nobody asked for."""

import os
import pathlib
import signal
import subprocess
import sys

import anyio
from mcp import MCPError

import processes
from results import answered
from server import PROGRAM, Connection, Http, Stdio, marking

FOREVER = 300

# What survives every polite request.
STUBBORN = f"trap '' TERM HUP; while :; do sleep 1; done & setsid sleep {FOREVER} & wait"


async def kill_in_the_middle(mark: str, count: int, *options: str) -> None:
    """Starts a client, waits for so many processes of its command, and kills the client."""
    program = pathlib.Path(__file__).with_name("dying_client.py")
    client = subprocess.Popen(
        [sys.executable, program, *options, marking(mark, STUBBORN)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        await processes.until_present(mark, count)
    finally:
        client.send_signal(signal.SIGKILL)
        client.wait()


class ClientIsKilled(Connection):
    async def test_a_client_killed_in_the_middle_of_a_command_leaves_nobody(self):
        mark = processes.new_mark()
        # A shell, a loop and a session of its own, once in the foreground and once as a job.
        options = ["--program", PROGRAM, "--directory", str(self.directory), "--mark", self.mark]
        await kill_in_the_middle(mark, 6, *options)
        await processes.until_gone(mark)
        await processes.until_gone(self.mark)


class ClientIsKilledOverHttp(Http):
    async def test_a_client_killed_in_the_middle_of_a_command_leaves_nobody(self):
        mark = processes.new_mark()
        # The server gives it some time to come back.
        await kill_in_the_middle(mark, 3, "--url", self.server.url, "--token", self.server.token)
        await processes.until_gone(mark)


class ServerIsKilled(Stdio):
    async def test_a_server_killed_in_the_middle_of_a_command_leaves_nobody(self):
        mark = processes.new_mark()
        async with self.connect() as client, anyio.create_task_group() as tasks:

            async def call() -> None:
                with self.assertRaises(MCPError):
                    await client.call_tool("bash", {"command": marking(mark, STUBBORN)})

            tasks.start_soon(call)
            await processes.until_present(mark, 3)
            os.kill(await self.server_pid(), signal.SIGKILL)
        await processes.until_gone(mark)


class ServerIsStopped(Http):
    async def test_a_server_that_is_asked_to_end_ends_what_it_runs(self):
        mark = processes.new_mark()
        async with self.connect() as client, anyio.create_task_group() as tasks:
            await answered(client, "bash", command=marking(mark, STUBBORN), run_in_background=True)

            async def call() -> None:
                # Answered with what there is, or not any more: both are an end.
                try:
                    await client.call_tool("bash", {"command": marking(mark, STUBBORN)}, 2 * processes.BOUND)
                except MCPError:
                    pass

            tasks.start_soon(call)
            await processes.until_present(mark, 6)
            self.server.process.send_signal(signal.SIGTERM)
            await processes.until_gone(mark)
            tasks.cancel_scope.cancel()
