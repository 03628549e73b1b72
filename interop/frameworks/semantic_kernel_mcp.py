"""Semantic Kernel, with the schemas that OpenAI's models get."""

from contextlib import asynccontextmanager

from mcp.shared.exceptions import McpError
from semantic_kernel import Kernel
from semantic_kernel.connectors.ai.function_calling_utils import (
    kernel_function_metadata_to_function_call_format,
)
from semantic_kernel.connectors.mcp import MCPStdioPlugin, MCPStreamableHttpPlugin

from checks import Failed, main

lacks = {
    "error": "errors come back as plain text",
    "elicit": "has no callback for it",
    "title": "drops titles",
}


class Peer:
    def __init__(self, kernel, plugin):
        self.kernel = kernel
        self.functions = plugin.functions
        self.schemas = {}
        for name, function in plugin.functions.items():
            call = kernel_function_metadata_to_function_call_format(function.metadata)
            self.schemas[name] = call["function"]["parameters"]

    async def call(self, name, arguments):
        result = await self.functions[name].invoke(self.kernel, **arguments)
        return str(result.value)


@asynccontextmanager
async def open(target):
    if isinstance(target, str):
        plugin = MCPStreamableHttpPlugin(name="server", url=target)
    else:
        plugin = MCPStdioPlugin(name="server", command=target[0], args=target[1:])
    async with plugin:
        kernel = Kernel()
        yield Peer(kernel, kernel.add_plugin(plugin))


if __name__ == "__main__":
    import semantic_kernel_mcp

    main(semantic_kernel_mcp)
