"""LangChain with `langchain-mcp-adapters`, with schemas as for OpenAI."""

from contextlib import asynccontextmanager

from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from mcp.types import ElicitResult

from checks import Failed, main


class Peer:
    def __init__(self, tools):
        self.tools = {tool.name: tool for tool in tools}
        self.schemas = {
            tool.name: convert_to_openai_tool(tool)["function"]["parameters"] for tool in tools
        }

    async def call(self, name, arguments):
        made = {"name": name, "args": arguments, "id": "1", "type": "tool_call"}
        message = await self.tools[name].ainvoke(made)
        if message.status == "error":
            raise Failed(str(message.content))
        return str(message.content)

    def title(self, name):
        return (self.tools[name].metadata or {}).get("title")


async def answer(_mcp_context, _params, _context):
    return ElicitResult(action="accept", content={"name": "Ada"})


@asynccontextmanager
async def open(target):
    if isinstance(target, str):
        server = {"transport": "streamable_http", "url": target}
    else:
        server = {"transport": "stdio", "command": target[0], "args": target[1:]}
    callbacks = Callbacks(on_elicitation=answer)
    client = MultiServerMCPClient({"server": server}, callbacks=callbacks)
    yield Peer(await client.get_tools())


if __name__ == "__main__":
    import langchain_mcp

    main(langchain_mcp)
