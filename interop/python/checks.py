"""The checks that every Python client runs, for both major versions of the SDK.

A walk is one connection in one mode. It prints `ok <mode> <check>` or
`not ok <mode> <check>: <reason>` for each check.
"""

import asyncio
import base64
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin
from urllib.request import urlopen

import anyio

WITNESS = Path(__file__).parent.parent / "witness.sh"
PATIENCE = 120
# Checks have their own time limit; this one covers the rest.
PATIENCE_IN_ALL = 900

failures = 0


def finish():
    """Exits with 1 if a check failed."""
    sys.exit(1 if failures else 0)


async def check(mode, name, work):
    """Runs one check, prints its outcome, and returns whether it passed."""
    global failures
    try:
        await asyncio.wait_for(work, PATIENCE)
    except Exception as error:
        failures += 1
        reason = " ".join((str(error) or repr(error)).split())
        print(f"not ok {mode} {name}: {reason}", flush=True)
        return False
    print(f"ok {mode} {name}", flush=True)
    return True


def same(one, other, what=""):
    """Fails if the values differ."""
    if one != other:
        raise AssertionError(f"{what} {one!r} is not {other!r}".strip())


async def until(is_so):
    """Waits until a condition holds."""
    while not await is_so():
        await asyncio.sleep(0.01)


async def refused(work):
    """The error code of a request that must fail."""
    try:
        await work
    except Exception as error:
        if hasattr(error, "error"):
            return error.error.code
        raise
    raise AssertionError("was not rejected")


def text(result):
    return "".join(block["text"] for block in result["content"])


def names(items):
    return [item["name"] for item in items]


async def walk(mode, target, open_peer):
    """Connects and checks everything.

    `target` is the server's command, or its URL alone. `open_peer(server)` is an asynchronous context
    manager that takes a command or, as a string, a URL, and returns the peer. A peer returns plain
    dictionaries as they appear on the wire, and has

    - `revision`: the negotiated revision
    - `heard`: the notifications so far, as (method, params)
    - `asked`: the parameters of requests to the user so far
    - `elicited`: the user's answer; can be changed
    - `large`: the length of a large message
    - one method for each request; `identity()` is the server's name, instructions and capabilities
    - `watch(…)`: an asynchronous context manager that subscribes to changes
    - `cancel()`: starts the tool `wait`, then cancels it
    """
    kind = Remote if target[0].startswith("http://") else Local
    with kind.at(target) as site:

        async def whole():
            async with open_peer(site.server) as peer:
                await check(mode, "connect", asyncio.sleep(0))
                for name, (work, since, before) in CHECKS.items():
                    if since <= peer.revision < before:
                        await check(mode, name, work(peer))

        # The checks report their own failures; what remains is connecting and closing.
        try:
            with anyio.fail_after(PATIENCE_IN_ALL):
                await whole()
        except Exception as error:
            await check(mode, "connect", fail(error))
            return
        await check(mode, "shutdown", site.ended_well())

        async def busy():
            started = asyncio.Event()

            async def report(*_):
                started.set()

            async with open_peer(site.server) as peer:
                before = await abandoned(peer)
                waiting = asyncio.ensure_future(peer.call("wait", progress=report))
                await started.wait()
                await peer.call("echo", {"message": "busy"})
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await site.ended_well()
            await site.check_abandoned(open_peer, before + 1)

        await check(mode, "shutdown-busy", busy())


class Local:
    """A server that its client starts, and that exits with the connection."""

    def __init__(self, command, status):
        self.server = ["sh", str(WITNESS), str(status), *command]
        self.status = status

    @classmethod
    @contextmanager
    def at(cls, target):
        with tempfile.TemporaryDirectory() as folder:
            yield cls(target, Path(folder) / "status")

    async def ended_well(self):
        async def written():
            return self.status.exists() and self.status.read_text().strip() != ""

        await until(written)
        same(self.status.read_text().strip(), "0", "exit status")
        self.status.unlink()

    async def check_abandoned(self, *_):
        """Nothing to check: calls end with the process."""


class Remote:
    """A running server that outlives its clients."""

    def __init__(self, url):
        self.server = url

    @classmethod
    @contextmanager
    def at(cls, target):
        yield cls(target[0])

    async def ended_well(self):
        def status():
            with urlopen(urljoin(self.server, "/health")) as answer:
                return answer.status

        same(await asyncio.to_thread(status), 200, "health")

    async def check_abandoned(self, open_peer, wanted):
        """Calls that a client leaves behind are stopped."""
        async with open_peer(self.server) as peer:

            async def is_abandoned():
                return await abandoned(peer) == wanted

            await until(is_abandoned)


async def abandoned(peer):
    """The number of cancelled waits."""
    return int(text(await peer.call("abandoned")))


async def fail(error):
    while getattr(error, "exceptions", None):
        error = error.exceptions[0]
    raise error


CHECKS = {}


def checks(name, since="", before="9"):
    """Registers a function as a check, for revisions from `since` on and before `before`."""

    def add(work):
        CHECKS[name] = (work, since, before)
        return work

    return add


@checks("identity")
async def identity(peer):
    name, instructions, capabilities = await peer.identity()
    same(name, "everything")
    same(instructions, "Try every tool once.")
    for name in ["tools", "resources", "prompts", "completions", "logging"]:
        assert name in capabilities, name


@checks("ping", before="2026-07-28")
async def ping(peer):
    await peer.ping()


@checks("list-tools")
async def list_tools(peer):
    tools = {tool["name"]: tool for tool in (await peer.list_tools())["tools"]}
    for name in ["echo", "structured", "content", "failing", "slow", "logging", "elicit"]:
        assert name in tools, name
    same(tools["echo"]["inputSchema"]["properties"]["message"]["type"], "string")
    same(tools["structured"]["outputSchema"]["properties"]["total"]["type"], "integer")


@checks("list-resources")
async def list_resources(peer):
    same(names((await peer.list_resources())["resources"]), ["static", "bytes", "counter"])


@checks("list-templates")
async def list_templates(peer):
    templates = (await peer.list_templates())["resourceTemplates"]
    same(templates[0]["uriTemplate"], "test://users/{name}")


@checks("list-prompts")
async def list_prompts(peer):
    prompts = (await peer.list_prompts())["prompts"]
    same(names(prompts), ["plain", "greet"])
    same([argument["required"] for argument in prompts[1]["arguments"]], [True, False])


@checks("call-text")
async def call_text(peer):
    said = 'knots: ⚓ \n "quoted"'
    same(text(await peer.call("echo", {"message": said})), said)


@checks("call-structured")
async def call_structured(peer):
    result = await peer.call("structured", {"a": 2, "b": 3})
    same(result["structuredContent"], {"total": 5, "parts": [2, 3], "note": None})


@checks("call-content")
async def call_content(peer):
    result = await peer.call("content")
    kinds = [block["type"] for block in result["content"]]
    same(kinds, ["text", "image", "audio", "resource"])


@checks("call-failing")
async def call_failing(peer):
    result = await peer.call("failing")
    same((result["isError"], text(result)), (True, "there is no luck today"))


@checks("call-unknown")
async def call_unknown(peer):
    same(await refused(peer.call("nothing")), -32602)


@checks("call-wrong")
async def call_wrong(peer):
    result = await peer.call("structured", {"a": "two", "b": 3})
    same(result["isError"], True)
    assert "arguments.a" in text(result), text(result)


@checks("call-many")
async def call_many(peer):
    numbers = [str(number) for number in range(100)]
    answers = await asyncio.gather(*(peer.call("echo", {"message": it}) for it in numbers))
    same([text(answer) for answer in answers], numbers)


@checks("call-large")
async def call_large(peer):
    message = "x" * peer.large
    assert text(await peer.call("echo", {"message": message})) == message


@checks("read-text")
async def read_text(peer):
    contents = (await peer.read("test://static"))["contents"]
    same((contents[0]["text"], contents[0]["mimeType"]), ("always the same", "text/plain"))


@checks("read-bytes")
async def read_bytes(peer):
    contents = (await peer.read("test://bytes"))["contents"]
    same(base64.b64decode(contents[0]["blob"]), b"\x00\xff")


@checks("read-template")
async def read_template(peer):
    same((await peer.read("test://users/ada"))["contents"][0]["text"], "user ada")


@checks("read-missing")
async def read_missing(peer):
    code = -32602 if peer.revision >= "2026-07-28" else -32002
    for uri in ["test://nothing", "test://users/nobody"]:
        same(await refused(peer.read(uri)), code, uri)


@checks("prompt-plain")
async def prompt_plain(peer):
    messages = (await peer.prompt("plain"))["messages"]
    same(messages[0]["content"]["text"], "Say something nice.")


@checks("prompt-arguments")
async def prompt_arguments(peer):
    messages = (await peer.prompt("greet", {"name": "Ada", "style": "formal"}))["messages"]
    same(messages[0]["content"]["text"], "Greet Ada in a Formal way.")
    same(messages[1]["role"], "assistant")


@checks("prompt-wrong")
async def prompt_wrong(peer):
    same(await refused(peer.prompt("greet")), -32602)


@checks("complete-prompt")
async def complete_prompt(peer):
    prompt = {"type": "ref/prompt", "name": "greet"}
    name = await peer.complete(prompt, "name", "a")
    same(name["completion"]["values"], ["ada", "alan"])
    style = await peer.complete(prompt, "style", "fo")
    same(style["completion"]["values"], ["formal"])


@checks("complete-template")
async def complete_template(peer):
    template = {"type": "ref/resource", "uri": "test://users/{name}"}
    result = await peer.complete(template, "name", "g")
    same(result["completion"]["values"], ["grace"])


@checks("progress")
async def progress(peer):
    reports = []

    async def report(done, total, message):
        reports.append((done, total, message))

    result = await peer.call("slow", {"steps": 3, "ms": 200}, progress=report)
    same(text(result), "3 steps")
    same(reports, [(step, 3, f"step {step}") for step in (1, 2, 3)])


@checks("logs")
async def logs(peer):
    peer.heard.clear()
    await peer.log_from("warning")
    told = [params for method, params in peer.heard if method == "notifications/message"]
    loud = ["warning", "error", "critical", "alert", "emergency"]
    same([params["level"] for params in told], loud)
    same(told[0]["data"], "a message of level warning")


@checks("elicit")
async def elicit(peer):
    peer.asked.clear()
    peer.elicited = {"action": "accept", "content": {"name": "Ada", "count": 2, "size": "large"}}
    same(text(await peer.call("elicit")), "Ada: 2 Large false")
    same(peer.asked[0]["message"], "What would you like?")
    form = peer.asked[0]["requestedSchema"]
    same(form["required"], ["name", "count", "size"])
    same(form["properties"]["size"]["enum"], ["small", "large"])
    peer.elicited = {"action": "decline"}
    same(text(await peer.call("elicit")), "declined")
    peer.elicited = {"action": "cancel"}
    same(text(await peer.call("elicit")), "cancelled")


@checks("elicit-url")
async def elicit_url(peer):
    peer.asked.clear()
    peer.elicited = {"action": "accept"}
    same(text(await peer.call("elicit_url")), "went there")
    same(peer.asked[0]["url"], "https://example.com/sign-in")


@checks("sample")
async def sample(peer):
    same(text(await peer.call("sample", {"message": "ahoy"})), "parrot: ahoy, ahoy")


@checks("roots")
async def roots(peer):
    same(text(await peer.call("roots")), "file:///srv/one file:///srv/two")


@checks("resource-updated")
async def resource_updated(peer):
    uri = "test://counter"

    async def read():
        return (await peer.read(uri))["contents"][0]["text"]

    def told():
        return [it for it in peer.heard if it[0] == "notifications/resources/updated"]

    async def is_told():
        return len(told()) == 1

    before = int(await read())
    peer.heard.clear()
    async with peer.watch(uris=[uri]):
        await peer.call("touch")
        await until(is_told)
        same(told()[0][1]["uri"], uri)
        same(await read(), str(before + 1))
    await peer.call("touch")
    await peer.call("slow", {"steps": 1, "ms": 50})
    same(len(told()), 1, "told after the end:")


@checks("tools-changed")
async def tools_changed(peer):
    async def has():
        return "extra" in names((await peer.list_tools())["tools"])

    async def is_told(times):
        told = [it for it in peer.heard if it[0] == "notifications/tools/list_changed"]
        return len(told) == times

    peer.heard.clear()
    async with peer.watch(tools=True):
        await peer.call("change_tools")
        await until(lambda: is_told(1))
        same(await has(), True)
        same(text(await peer.call("extra")), "not always here")
        await peer.call("change_tools")
        await until(lambda: is_told(2))
        same(await has(), False)


@checks("cancel")
async def cancel(peer):
    async def is_abandoned():
        return await abandoned(peer) == before + 1

    before = await abandoned(peer)
    await peer.cancel()
    await until(is_abandoned)
