"""Walks a server with the official Python client, version 2, in both eras:
`python walk_v2.py <server command… or URL>`.
"""

import asyncio
import sys
import warnings
from contextlib import asynccontextmanager

import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.shared.subscriptions import event_to_notification

from checks import finish, same, walk

# Deprecated features are walked as long as they exist.
warnings.simplefilter("ignore", MCPDeprecationWarning)

MODERN = "2026-07-28"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"


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
        if isinstance(message, Exception):
            print(f"unexpected: {message}", file=sys.stderr)
            return
        # In the modern era, changes arrive where they were subscribed to.
        if not self.is_modern or isinstance(message, types.LoggingMessageNotification):
            self.hear(message)

    def hear(self, notification):
        self.heard.append((notification.method, wire(notification).get("params")))

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

    @property
    def is_modern(self):
        return self.revision >= MODERN

    async def identity(self):
        if self.client.server_info is None:
            # A client with a fixed revision has not asked for the server's identity.
            session = self.client.session
            answer = await session.send_discover(self.revision)
            session.adopt(types.DiscoverResult.model_validate(answer))
        name = self.client.server_info.name
        return name, self.client.instructions, wire(self.client.server_capabilities)

    async def ping(self):
        await self.client.send_ping()

    async def list_tools(self):
        return wire(await self.client.list_tools())

    async def list_resources(self):
        return wire(await self.client.list_resources())

    async def list_templates(self):
        return wire(await self.client.list_resource_templates())

    async def list_prompts(self):
        return wire(await self.client.list_prompts())

    async def call(self, name, arguments=None, progress=None, meta=None):
        result = await self.client.call_tool(
            name, arguments or {}, progress_callback=progress, meta=meta
        )
        return wire(result)

    async def read(self, uri):
        return wire(await self.client.read_resource(uri))

    async def prompt(self, name, arguments=None):
        return wire(await self.client.get_prompt(name, arguments))

    async def complete(self, reference, name, value):
        is_prompt = reference["type"] == "ref/prompt"
        kind = types.PromptReference if is_prompt else types.ResourceTemplateReference
        argument = {"name": name, "value": value}
        return wire(await self.client.complete(kind(**reference), argument))

    async def log_from(self, level):
        if self.is_modern:
            await self.call("logging", meta={LOG_LEVEL: level})
            # Clients that do not request logs get none.
            await self.call("logging")
        else:
            await self.client.set_logging_level(level)
            await self.call("logging")

    @asynccontextmanager
    async def watch(self, uris=(), tools=False):
        if not self.is_modern:
            # In the legacy era, list changes are announced unasked.
            for uri in uris:
                await self.client.subscribe_resource(uri)
            yield
            for uri in uris:
                await self.client.unsubscribe_resource(uri)
            return
        async with self.client.listen(
            tools_list_changed=tools, resource_subscriptions=uris
        ) as subscription:
            same(list(subscription.honored.resource_subscriptions or ()), list(uris), "honoured")
            same(bool(subscription.honored.tools_list_changed), tools, "honoured")

            async def hear():
                async for event in subscription:
                    self.hear(event_to_notification(event, {}))

            hearing = asyncio.ensure_future(hear())
            yield
        await hearing

    async def cancel(self):
        started = asyncio.Event()

        async def report(*_):
            started.set()

        waiting = asyncio.ensure_future(self.call("wait", progress=report))
        await started.wait()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


def is_sse(server):
    return isinstance(server, str) and server.endswith("/sse")


def transport(server):
    if not isinstance(server, str):
        return StdioServerParameters(command=server[0], args=server[1:])
    return sse_client(server) if is_sse(server) else server


def opener(mode, revision):
    """Opens clients in this mode, which must negotiate this revision."""

    @asynccontextmanager
    async def open_peer(server):
        peer = Peer()
        if is_sse(server):
            # This client rejects events of more than a mebibyte, and the limit is fixed.
            peer.large = 1_000_000
        async with Client(
            transport(server),
            mode=mode,
            elicitation_callback=peer.on_elicit,
            sampling_callback=peer.on_sample,
            list_roots_callback=peer.on_roots,
            message_handler=peer.on_message,
        ) as client:
            peer.client = client
            peer.revision = client.protocol_version
            same(peer.revision, revision, "revision")
            yield peer

    return open_peer


async def main(server):
    await walk("2025-11-25", server, opener("legacy", "2025-11-25"))
    # HTTP+SSE ended with the legacy era.
    if server[0].endswith("/sse"):
        return
    await walk("auto", server, opener("auto", MODERN))
    await walk(MODERN, server, opener(MODERN, MODERN))


asyncio.run(main(sys.argv[1:]))
finish()
