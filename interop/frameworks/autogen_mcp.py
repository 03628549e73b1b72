"""AutoGen with `autogen-ext[mcp]`, with the schemas that a model gets."""

from contextlib import asynccontextmanager

from autogen_core import CancellationToken
from autogen_ext.tools.mcp import StdioServerParams, StreamableHttpServerParams, mcp_server_tools

from checks import Failed, innermost, main

lacks = {
    "inner": "drops the members of alternatives",
    "elicit": "has no callback for it",
    "title": "drops titles",
}


class Peer:
    def __init__(self, tools):
        self.tools = {tool.name: tool for tool in tools}
        self.schemas = {tool.name: tool.schema["parameters"] for tool in tools}

    async def call(self, name, arguments):
        try:
            result = await self.tools[name].run_json(arguments, CancellationToken())
        except Exception as error:
            raise Failed(str(innermost(error))) from error
        return str(result)


@asynccontextmanager
async def open(target):
    if isinstance(target, str):
        parameters = StreamableHttpServerParams(url=target)
    else:
        parameters = StdioServerParams(command=target[0], args=target[1:], read_timeout_seconds=30)
    yield Peer(await mcp_server_tools(parameters))


if __name__ == "__main__":
    import autogen_mcp

    main(autogen_mcp)
