"""A client that calls one command and waits for its end: for a test that kills it before."""

import sys

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(program: str, directory: str, server_mark: str, command: str) -> None:
    parameters = StdioServerParameters(command=program, args=["mcp"], env={"PEER_SERVER": server_mark}, cwd=directory)
    async with Client(stdio_client(parameters)) as client:
        await client.call_tool("bash", {"command": f"{command} & wait", "run_in_background": True})
        await client.call_tool("bash", {"command": command})


anyio.run(main, *sys.argv[1:])
