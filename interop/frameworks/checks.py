"""The checks that every Python framework runs.

`python <framework>.py <servers> <URL>`: the first argument is a JSON object of command lines by name, the
second the URL of the server `shapes`. For each check it prints `ok <where> <check>`, `not ok <where>
<check>: <reason>`, or `lacks <where> <check>: <reason>` for what the framework itself cannot do.
"""

import asyncio
import json
import subprocess
import sys
from contextlib import asynccontextmanager

PATIENCE = 60
SHAPES = "shapes"

failures = 0


class Failed(Exception):
    """A tool reported an error."""


def listed(command):
    """The tools of a server as it lists them, without any framework."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    client = {"name": "checks", "version": "1"}
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    with process:
        def say(message):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            process.stdin.flush()

        def hear(number):
            return next(it for it in map(json.loads, process.stdout) if it.get("id") == number)

        say({"id": 1, "method": "initialize", "params": opening})
        hear(1)
        say({"method": "notifications/initialized"})
        say({"id": 2, "method": "tools/list"})
        return {tool["name"]: tool["inputSchema"] for tool in hear(2)["result"]["tools"]}


async def check(where, name, work):
    """Runs one check and prints its outcome."""
    global failures
    try:
        await asyncio.wait_for(work, PATIENCE)
    except Exception as error:
        failures += 1
        error = innermost(error)
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"not ok {where} {name}: {reason[:600]}", flush=True)
    else:
        print(f"ok {where} {name}", flush=True)


def innermost(error):
    """The error itself, where it comes in a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def expect(holds, what):
    if not holds:
        raise AssertionError(what)


def strings(value):
    """All strings in a value."""
    if isinstance(value, dict):
        return {found for it in value.values() for found in strings(it)}
    if isinstance(value, (list, tuple)):
        return {found for it in value for found in strings(it)}
    return {value} if isinstance(value, str) else set()


def is_open(schema):
    """Whether an object in a schema takes members of any name."""
    if isinstance(schema, list):
        return any(map(is_open, schema))
    if not isinstance(schema, dict):
        return False
    more = schema.get("additionalProperties")
    return more is True or isinstance(more, dict) or any(map(is_open, schema.values()))


def words(schema, is_deep):
    """The words that a schema allows: itself, or also in what it contains."""
    if isinstance(schema, list):
        return [word for it in schema for word in words(it, is_deep)]
    if not isinstance(schema, dict):
        return []
    found = [*schema.get("enum", []), schema.get("const")]
    inner = schema.values() if is_deep else [schema.get("oneOf"), schema.get("anyOf")]
    return [it for it in found if it is not None] + words(list(inner), is_deep)


def compare(tool, schema, converted):
    """Fails if a converted schema lacks an argument, a choice, or the description of one."""
    properties = converted.get("properties") or {}
    for name, wanted in schema.get("properties", {}).items():
        expect(name in properties, f"{tool}.{name} is missing")
        found = strings(properties[name])
        lost = [word for word in words(wanted, False) if word not in found]
        expect(not lost, f"{tool}.{name} lost the choices {lost} in {properties[name]}")
        about = wanted.get("description")
        is_there = about is None or any(about.strip() in text for text in found)
        # Some make a class of an object, and describe only its members.
        is_class = "properties" in wanted
        expect(is_there or is_class, f"{tool}.{name} lost its description in {properties[name]}")
    wanted = set(schema.get("required", []))
    found = set(converted.get("required") or [])
    expect(wanted <= found, f"{tool}: {sorted(wanted - found)} need not be there any more")


async def walk(framework, servers, url):
    """Runs all checks with a framework.

    `framework.open(target)` is an asynchronous context manager; the target is a command or, as a string, a
    URL. It returns an object with

    - `schemas`: the converted schemas of all tools by name, as a model gets them
    - `call(name, arguments)`: the text of a result; raises `Failed` with the text of an error

    `framework.lacks` names the checks that the framework cannot pass with any server, with the reason.
    """
    lacks = getattr(framework, "lacks", {})

    async def one(where, name, work):
        reason = lacks.get(name)
        if reason is None:
            await check(where, name, work)
            return
        work.close()
        print(f"lacks {where} {name}: {reason}", flush=True)

    for name, command in servers.items():
        await one(name, "convert", convert(framework, command))
    shapes = servers[SHAPES]
    await one(SHAPES, "inner", inner(framework, shapes))
    for where, target in (("stdio", shapes), ("http", url)):
        await one(where, "call", call(framework, target))
        await one(where, "choose", choose(framework, target))
        await one(where, "null", null(framework, target))
        await one(where, "error", error(framework, target))
        await one(where, "elicit", elicit(framework, target))
    await one("stdio", "title", title(framework, shapes))


async def convert(framework, command):
    wanted = await asyncio.to_thread(listed, command)
    async with framework.open(command) as peer:
        for name, schema in wanted.items():
            found = [it for other, it in peer.schemas.items() if plain(other) == plain(name)]
            expect(found, f"the tool {name} is missing")
            compare(name, schema, found[0])


def plain(name):
    """A name without what some frameworks replace in it."""
    return name.replace("-", "_").rstrip("_")


async def inner(framework, command):
    """Choices in lists, in objects and in alternatives."""
    wanted = await asyncio.to_thread(listed, command)
    async with framework.open(command) as peer:
        for name in ("choices", "nested", "either"):
            found = strings(peer.schemas[name])
            lost = [word for word in words(wanted[name], True) if word not in found]
            expect(not lost, f"{name} lost the choices {lost} in {peer.schemas[name]}")


async def call(framework, target):
    async with framework.open(target) as peer:
        said = await peer.call("numbers", NUMBERS)
        expect("1 2 3 -4 0.5" in said, said)
        expect("nothing" in await peer.call("nothing", {}), "nothing")


NUMBERS = {"small": 1, "large": 2, "size": 3, "signed": -4, "fraction": 0.5}


async def choose(framework, target):
    async with framework.open(target) as peer:
        said = await peer.call("choices", {"order": "date", "orders": ["name", "none"]})
        expect("Date" in said and "Name" in said, said)


async def null(framework, target):
    async with framework.open(target) as peer:
        arguments = dict.fromkeys(["word", "count", "hurry", "words", "place"])
        said = await peer.call("options", {"text": "here", **arguments})
        expect("here None None None None None 10" in said, said)
        said = await peer.call("raw", {"text": "here", "word": None})
        expect("here" in said and "word" not in said, said)


async def error(framework, target):
    async with framework.open(target) as peer:
        try:
            said = await peer.call("fail", {})
        except Failed as failed:
            said = str(failed)
        else:
            raise AssertionError(f"the error is not one: {said}")
        expect("it did not work out" in said, said)


async def elicit(framework, target):
    async with framework.open(target) as peer:
        said = await peer.call("ask", {})
        expect("hello Ada" in said, said)


async def title(framework, target):
    async with framework.open(target) as peer:
        expect(peer.title("choices") == "Choose", f"the title is {peer.title('choices')!r}")


@asynccontextmanager
async def in_thread(manager):
    """A synchronous context manager of a framework that has no other."""
    entered = await asyncio.to_thread(manager.__enter__)
    try:
        yield entered
    finally:
        await asyncio.to_thread(manager.__exit__, None, None, None)


def main(framework):
    servers, url = json.loads(sys.argv[1]), sys.argv[2]
    asyncio.run(walk(framework, servers, url))
    sys.exit(1 if failures else 0)
