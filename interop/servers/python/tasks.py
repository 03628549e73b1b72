"""Walks the tasks of our server with FastMCP's client: `python tasks.py <URL>`.

It prints `ok <mode> <check>` or `not ok <mode> <check>: <reason>` for each check, as the other walks do.
"""

import asyncio
import sys

from fastmcp import Client
from fastmcp.exceptions import ToolError
from fastmcp_tasks.client import call_tool_task

PATIENCE = 60
MODE = "2026-07-28"


async def yes(message, response_type, params, context):
    """Answers every question."""
    return {"confirm": True}


def text(result):
    return "".join(block.text for block in result.content)


async def completes(client):
    result = await client.call_tool("slow_compute", {"seconds": 0.2, "label": "it"})
    assert text(result) == "it took 0.2 seconds", result


async def handle(client):
    task = await call_tool_task(client, "slow_compute", {"seconds": 60})
    assert (await task.status()).status == "working"
    await task.cancel()
    task = await call_tool_task(client, "slow_compute", {"seconds": 0.2, "label": "it"})
    assert text(await task.result()) == "it took 0.2 seconds"
    assert (await task.status()).status == "completed"


async def cancel(client):
    task = await call_tool_task(client, "slow_compute", {"seconds": 60})
    await task.cancel()
    while (await task.status()).status != "cancelled":
        await asyncio.sleep(0.05)


async def fails(client):
    for tool in ["failing_job", "protocol_error_job"]:
        try:
            await client.call_tool(tool, {})
        except ToolError as error:
            assert "as it should" in str(error), error
        else:
            raise AssertionError(f"{tool} was not rejected")


async def asks(client):
    result = await client.call_tool("confirm_delete", {"filename": "a.txt"})
    assert text(result) == "a.txt was deleted", result


async def asks_twice(client):
    result = await client.call_tool("multi_input", {})
    assert text(result) == "answers: [true, true]", result


CHECKS = [completes, handle, cancel, fails, asks, asks_twice]


async def main(url):
    failures = 0
    async with Client(url, elicitation_handler=yes) as client:
        for check in CHECKS:
            try:
                await asyncio.wait_for(check(client), PATIENCE)
                print(f"ok {MODE} {check.__name__}")
            except Exception as error:
                failures += 1
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                print(f"not ok {MODE} {check.__name__}: {reason}")
    return failures


sys.exit(1 if asyncio.run(main(sys.argv[1])) else 0)
