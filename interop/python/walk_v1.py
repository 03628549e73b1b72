"""Walks a server with the official Python client, version 1:
`python walk_v1.py <server command… or URL>`.
"""

import asyncio
import sys
from contextlib import asynccontextmanager

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl

from checks import finish, walk


def wire(model):
    """A model as it appears on the wire, so that both versions look alike."""
    return model.model_dump(by_alias=True, mode="json", exclude_unset=True)


class Peer:
    def __init__(self):
        self.heard = []
        self.asked = []
        self.elicited = {"action": "decline"}
        self.large = 2_000_000

    # Requests from the server.

    async def on_message(self, message):
        if isinstance(message, types.ServerNotification):
            notification = message.root
            self.heard.append((notification.method, wire(notification).get("params")))
        elif isinstance(message, Exception):
            print(f"unexpected: {message}", file=sys.stderr)

    async def on_elicit(self, _, params):
        self.asked.append(wire(params))
        return types.ElicitResult(**self.elicited)

    async def on_sample(self, _, params):
        said = params.messages[0].content.text
        content = types.TextContent(type="text", text=f"{said}, {said}")
        return types.CreateMessageResult(role="assistant", model="parrot", content=content)

    async def on_roots(self, _):
        roots = [types.Root(uri="file:///srv/one", name="one"), types.Root(uri="file:///srv/two")]
        return types.ListRootsResult(roots=roots)

    # Requests to the server.

    async def identity(self):
        result = self.initialized
        return result.serverInfo.name, result.instructions, wire(result.capabilities)

    async def ping(self):
        await self.session.send_ping()

    async def list_tools(self):
        return wire(await self.session.list_tools())

    async def list_resources(self):
        return wire(await self.session.list_resources())

    async def list_templates(self):
        return wire(await self.session.list_resource_templates())

    async def list_prompts(self):
        return wire(await self.session.list_prompts())

    async def call(self, name, arguments=None, progress=None):
        result = await self.session.call_tool(name, arguments or {}, progress_callback=progress)
        return wire(result)

    async def read(self, uri):
        return wire(await self.session.read_resource(AnyUrl(uri)))

    async def prompt(self, name, arguments=None):
        return wire(await self.session.get_prompt(name, arguments))

    async def complete(self, reference, name, value):
        is_prompt = reference["type"] == "ref/prompt"
        kind = types.PromptReference if is_prompt else types.ResourceTemplateReference
        argument = {"name": name, "value": value}
        return wire(await self.session.complete(kind(**reference), argument))

    async def log_from(self, level):
        await self.session.set_logging_level(level)
        await self.call("logging")

    @asynccontextmanager
    async def watch(self, uris=(), tools=False):
        # In the legacy era, list changes are announced unasked.
        for uri in uris:
            await self.session.subscribe_resource(AnyUrl(uri))
        yield
        for uri in uris:
            await self.session.unsubscribe_resource(AnyUrl(uri))

    async def cancel(self):
        started = asyncio.Event()

        async def report(*_):
            started.set()

        # This version has no call for it, so the id must be known.
        request_id = self.session._request_id
        waiting = asyncio.ensure_future(self.call("wait", progress=report))
        await started.wait()
        params = types.CancelledNotificationParams(requestId=request_id, reason="enough")
        notification = types.CancelledNotification(params=params)
        await self.session.send_notification(types.ClientNotification(notification))
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


def transport(server):
    if not isinstance(server, str):
        return stdio_client(StdioServerParameters(command=server[0], args=server[1:]))
    return sse_client(server) if server.endswith("/sse") else streamable_http_client(server)


@asynccontextmanager
async def open_peer(server):
    peer = Peer()
    async with transport(server) as (read, write, *_):
        async with ClientSession(
            read,
            write,
            elicitation_callback=peer.on_elicit,
            sampling_callback=peer.on_sample,
            list_roots_callback=peer.on_roots,
            message_handler=peer.on_message,
        ) as session:
            peer.session = session
            peer.initialized = await session.initialize()
            peer.revision = peer.initialized.protocolVersion
            yield peer


asyncio.run(walk("legacy", sys.argv[1:], open_peer))
finish()
