"""smolagents, with the schemas that its models get."""

import asyncio
from contextlib import asynccontextmanager

from mcp import StdioServerParameters
from smolagents import MCPClient
from smolagents.models import get_tool_json_schema

from checks import main

lacks = {
    "inner": "drops the members of alternatives",
    "error": "errors come back as plain text",
    "elicit": "has no callback for it",
    "title": "drops titles",
}


class Peer:
    def __init__(self, tools):
        self.tools = {tool.name: tool for tool in tools}
        self.schemas = {
            tool.name: get_tool_json_schema(tool)["function"]["parameters"] for tool in tools
        }

    async def call(self, name, arguments):
        return str(await asyncio.to_thread(lambda: self.tools[name](**arguments)))


@asynccontextmanager
async def open(target):
    if isinstance(target, str):
        server = {"url": target, "transport": "streamable-http"}
    else:
        server = StdioServerParameters(command=target[0], args=target[1:])
    client = await asyncio.to_thread(MCPClient, server, structured_output=False)
    try:
        yield Peer(client.get_tools())
    finally:
        await asyncio.to_thread(client.disconnect)


if __name__ == "__main__":
    import smolagents_mcp

    main(smolagents_mcp)
