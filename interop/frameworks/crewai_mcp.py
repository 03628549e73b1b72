"""CrewAI with `crewai-tools`, with the schemas that its models get."""

import asyncio
from contextlib import asynccontextmanager

from crewai_tools import MCPServerAdapter
from mcp import StdioServerParameters

from checks import in_thread, main

lacks = {
    "error": "errors come back as plain text",
    "elicit": "has no callback for it",
    "title": "drops titles",
}


class Peer:
    def __init__(self, tools):
        self.tools = {tool.name: tool for tool in tools}
        self.schemas = {tool.name: tool.args_schema.model_json_schema() for tool in tools}

    async def call(self, name, arguments):
        return str(await asyncio.to_thread(lambda: self.tools[name].run(**arguments)))


@asynccontextmanager
async def open(target):
    if isinstance(target, str):
        server = {"url": target, "transport": "streamable-http"}
    else:
        server = StdioServerParameters(command=target[0], args=target[1:])
    async with in_thread(MCPServerAdapter(server)) as tools:
        yield Peer(tools)


if __name__ == "__main__":
    import crewai_mcp

    main(crewai_mcp)
