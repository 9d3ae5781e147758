"""Reading what a tool has answered."""

from typing import Any

from mcp import Client
from mcp_types import CallToolResult


def text(result: CallToolResult) -> str:
    """The text blocks of the result, as a model would read them."""
    return "\n".join(block.text for block in result.content if block.type == "text")


def links(result: CallToolResult) -> list[str]:
    """The resources that the result points to."""
    return [block.uri for block in result.content if block.type == "resource_link"]


async def answered(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Calls the tool, which must not fail, and returns the facts of its answer.

    The client compares them with the tool's schema before it hands them out.
    """
    result = await client.call_tool(tool, arguments)
    if result.is_error:
        raise AssertionError(f"{tool} {arguments} failed: {text(result)}")
    if result.structured_content is None:
        raise AssertionError(f"{tool} {arguments} has no structured content")
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """Calls the tool, which must answer with an error of its own, and returns the error's text."""
    result = await client.call_tool(tool, arguments)
    if not result.is_error:
        raise AssertionError(f"{tool} {arguments} did not fail: {text(result)}")
    return text(result)
