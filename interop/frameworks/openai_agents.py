"""OpenAI's agents in Python, with schemas in strict mode."""

import json
from contextlib import asynccontextmanager

from agents import Agent, RunContextWrapper
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp, MCPUtil
from agents.tool_context import ToolContext

from checks import expect, is_open, main

lacks = {
    "error": "errors come back as plain text",
    "elicit": "has no callback for it",
}


class Peer:
    def __init__(self, tools):
        self.tools = {tool.name: tool for tool in tools}
        self.schemas = {tool.name: tool.params_json_schema for tool in tools}
        for tool in tools:
            # What takes members of any name cannot be strict.
            is_strict = tool.strict_json_schema
            expect(is_strict or is_open(tool.params_json_schema), f"{tool.name} is not strict")

    async def call(self, name, arguments):
        text = json.dumps(arguments)
        context = ToolContext(None, tool_name=name, tool_call_id="1", tool_arguments=text)
        return json.dumps(await self.tools[name].on_invoke_tool(context, text))

    def title(self, name):
        return self.tools[name]._mcp_title


@asynccontextmanager
async def open(target):
    if isinstance(target, str):
        server = MCPServerStreamableHttp({"url": target})
    else:
        server = MCPServerStdio({"command": target[0], "args": target[1:]})
    async with server:
        context, agent = RunContextWrapper(None), Agent("checks")
        yield Peer(await MCPUtil.get_function_tools(server, True, context, agent))


if __name__ == "__main__":
    import openai_agents

    main(openai_agents)
