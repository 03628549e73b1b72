"""A server with FastMCP, in both eras: `python server.py stdio`, or `python server.py <transport>
<port>`, where the transport is `http` or `sse`."""

import logging
import sys
from dataclasses import dataclass

import anyio
import mcp_types as types
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp_tasks import TasksExtension
from starlette.middleware import Middleware

COUNTER = "test://counter"
USERS = ["ada", "alan", "grace"]

server = FastMCP(
    "interop", instructions="Try every tool once.", version="1.0.0", list_page_size=4
)
server.add_extension(TasksExtension())
# The counters of the process, shared by all its sessions.
counts = {"touched": 0, "abandoned": 0, "ended": 0}


@server.tool
def echo(message: str) -> str:
    return message


@dataclass
class Sum:
    total: int


@server.tool(name="sum")
def add(a: int, b: int) -> Sum:
    return Sum(total=a + b)


@server.tool
def fail() -> str:
    raise ToolError("there is no luck today")


@server.tool
async def slow(steps: int, ms: int, context: Context) -> str:
    for step in range(1, steps + 1):
        await anyio.sleep(ms / 1000)
        await context.report_progress(step, steps, f"step {step}")
    return f"{steps} steps"


@server.tool
async def wait(context: Context) -> str:
    await context.report_progress(1)
    try:
        await anyio.sleep(60)
    except anyio.get_cancelled_exc_class():
        counts["abandoned"] += 1
        raise
    return "nobody stopped it"


@server.tool(task=True)
async def long(ms: int) -> str:
    await anyio.sleep(ms / 1000)
    return "long enough"


@server.tool
def abandoned() -> str:
    return str(counts["abandoned"])


@server.tool
def ended() -> str:
    return str(counts["ended"])


@server.tool
async def log(context: Context) -> str:
    for level in ["info", "warning", "error"]:
        await context.log(f"a message of level {level}", level=level)
    return "logged"


@server.tool
def touch() -> str:
    counts["touched"] += 1
    return str(counts["touched"])


@server.tool
async def change_tools(context: Context) -> str:
    if await server.get_tool("extra") is None:
        server.add_tool(extra)
    else:
        server.local_provider.remove_tool("extra")
    await context.send_notification(types.ToolListChangedNotification())
    return "changed"


def extra() -> str:
    return "not always here"


@dataclass
class Order:
    name: str
    count: int = 1


FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name"},
        "count": {"type": "integer", "minimum": 1, "default": 1},
    },
    "required": ["name"],
}


async def answer(context: Context, question: types.InputRequest, ask):
    """Asks immediately in the legacy era; in the modern era, returns an input request."""
    # Tasks, which only the modern era has here, run without a request.
    request = context.request_context
    if request is not None and request.protocol_version < "2026-07-28":
        return await ask()
    answers = context.input_responses
    if answers is None:
        return types.InputRequiredResult(input_requests={"answer": question})
    return answers["answer"]


async def take_order(context: Context):
    params = types.ElicitRequestFormParams(
        message="What would you like?", requested_schema=FORM
    )
    found = await answer(
        context,
        types.ElicitRequest(params=params),
        lambda: context.elicit(params.message, Order),
    )
    if isinstance(found, types.InputRequiredResult):
        return found
    if found.action != "accept":
        return "declined" if found.action == "decline" else "cancelled"
    order = found.data if hasattr(found, "data") else Order(**found.content)
    return f"{order.name}: {order.count}"


@server.tool(output_schema=None)
async def ask(context: Context):
    return await take_order(context)


@server.tool(task=True, output_schema=None)
async def long_ask(context: Context):
    return await take_order(context)


@server.tool(output_schema=None)
async def sample(message: str, context: Context):
    content = types.TextContent(type="text", text=message)
    params = types.CreateMessageRequestParams(
        messages=[types.SamplingMessage(role="user", content=content)], max_tokens=100
    )
    found = await answer(
        context,
        types.CreateMessageRequest(params=params),
        lambda: context.session.create_message(
            params.messages, max_tokens=100, related_request_id=context.request_id
        ),
    )
    if isinstance(found, types.InputRequiredResult):
        return found
    return f"{found.model}: {found.content.text}"


@server.tool(output_schema=None)
async def roots(context: Context):
    found = await answer(context, types.ListRootsRequest(), context.session.list_roots)
    if isinstance(found, types.InputRequiredResult):
        return found
    return " ".join(str(root.uri) for root in found.roots)


@server.resource("test://static", name="static", mime_type="text/plain")
def static() -> str:
    return "always the same"


@server.resource(COUNTER, name="counter")
def counter() -> str:
    return str(counts["touched"])


@server.resource("test://users/{name}", name="users")
def user(name: str) -> str:
    return f"user {name}"


@server.prompt
def greet(name: str) -> str:
    return f"Greet {name}."


@server.completion
def complete(reference, argument, context):
    return [name for name in USERS if name.startswith(argument.value)]


class CountEnded:
    """Counts the sessions that clients end: with DELETE, or by closing their HTTP+SSE stream."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        async def watch(message):
            is_start = message["type"] == "http.response.start"
            if is_start and message["status"] < 300 and scope["method"] == "DELETE":
                counts["ended"] += 1
            await send(message)

        await self.app(scope, receive, watch)
        if scope["type"] == "http" and scope["path"] == "/sse" and scope["method"] == "GET":
            counts["ended"] += 1


logging.disable(logging.INFO)
transport, *port = sys.argv[1:]
if transport == "stdio":
    server.run("stdio", show_banner=False)
else:
    middleware = [Middleware(CountEnded)]
    server.run(
        transport, show_banner=False, host="127.0.0.1", port=int(port[0]), middleware=middleware
    )
