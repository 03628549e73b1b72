"""LlamaIndex with `llama-index-tools-mcp`, with schemas as for OpenAI."""

from contextlib import asynccontextmanager

from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

from checks import Failed, main

lacks = {
    "inner": "drops the members of objects unless they are references",
    "elicit": "has no callback for it",
    "title": "drops titles",
}


class Peer:
    def __init__(self, tools):
        self.tools = {tool.metadata.name: tool for tool in tools}
        self.schemas = {
            name: tool.metadata.to_openai_tool()["function"]["parameters"]
            for name, tool in self.tools.items()
        }

    async def call(self, name, arguments):
        output = await self.tools[name].acall(**arguments)
        result = output.raw_output
        if output.is_error or result.is_error:
            raise Failed(str(result))
        return str(result.content)


@asynccontextmanager
async def open(target):
    if isinstance(target, str):
        client = BasicMCPClient(target)
    else:
        client = BasicMCPClient(target[0], args=target[1:])
    yield Peer(await McpToolSpec(client=client).to_tool_list_async())


if __name__ == "__main__":
    import llama_index_mcp

    main(llama_index_mcp)
