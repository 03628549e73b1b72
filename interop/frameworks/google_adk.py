"""Google's Agent Development Kit, with schemas for Gemini."""

import os
import warnings
from contextlib import asynccontextmanager
from types import SimpleNamespace

# The conversion of schemas that Gemini had from the beginning. The newer way sends them as they are.
os.environ["ADK_DISABLE_JSON_SCHEMA_FOR_FUNC_DECL"] = "true"

from google.adk.tools.mcp_tool import (
    McpToolset,
    StdioConnectionParams,
    StreamableHTTPConnectionParams,
)
from mcp import StdioServerParameters
from mcp.types import ElicitResult

from checks import Failed, main

warnings.simplefilter("ignore")


class Peer:
    def __init__(self, tools):
        self.tools = {tool.name: tool for tool in tools}
        self.schemas = {}
        for tool in tools:
            parameters = tool._get_declaration().parameters
            self.schemas[tool.name] = parameters.model_dump(mode="json", exclude_none=True)

    async def call(self, name, arguments):
        context = SimpleNamespace(
            state={}, tool_confirmation=None, function_call_id="1", actions=None
        )
        result = await self.tools[name].run_async(args=arguments, tool_context=context)
        if result.get("isError"):
            raise Failed(str(result))
        return str(result)

    def title(self, name):
        return self.tools[name].raw_mcp_tool.title


async def answer(_context, _params):
    return ElicitResult(action="accept", content={"name": "Ada"})


@asynccontextmanager
async def open(target):
    if isinstance(target, str):
        parameters = StreamableHTTPConnectionParams(url=target)
    else:
        server = StdioServerParameters(command=target[0], args=target[1:])
        parameters = StdioConnectionParams(server_params=server, timeout=30)
    toolset = McpToolset(connection_params=parameters, elicitation_callback=answer)
    try:
        yield Peer(await toolset.get_tools())
    finally:
        await toolset.close()


if __name__ == "__main__":
    import google_adk

    main(google_adk)
