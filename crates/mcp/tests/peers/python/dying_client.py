"""A client that calls one command and waits for its end: for a test that kills it before.

It is told how to reach the server: by the program to start, or by an address and a token.
"""

import argparse

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


async def over_stdio(options: argparse.Namespace) -> None:
    parameters = StdioServerParameters(
        command=options.program, args=["mcp"], env={"PEER_SERVER": options.mark}, cwd=options.directory
    )
    async with Client(stdio_client(parameters)) as client:
        # The same once more in the background, which is the session's as well.
        await client.call_tool("bash", {"command": options.command, "run_in_background": True})
        await client.call_tool("bash", {"command": options.command})


async def over_http(options: argparse.Namespace) -> None:
    headers = {"Authorization": f"Bearer {options.token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=300) as http:
        async with Client(streamable_http_client(options.url, http_client=http)) as client:
            await client.call_tool("bash", {"command": options.command})


arguments = argparse.ArgumentParser()
for name in ("program", "directory", "mark", "url", "token"):
    arguments.add_argument(f"--{name}")
arguments.add_argument("command")
options = arguments.parse_args()
anyio.run(over_http if options.url else over_stdio, options)
