"""The notes server with FastMCP, in both eras: `python notes.py [DATABASE] [--http ADDRESS]`.

`docs/compare.md` says what it does, and compares it with the same server written with other SDKs.
"""

import argparse
import asyncio
import json
import sqlite3
from typing import Annotated

from fastmcp import Context, FastMCP
from fastmcp.exceptions import PromptError, ResourceError, ToolError
from mcp.types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    ResourceTemplateReference,
    SamplingMessage,
    TextContent,
    ToolAnnotations,
)
from pydantic import BaseModel, Field

arguments = argparse.ArgumentParser(description="Keep notes.")
arguments.add_argument("database", nargs="?", default=":memory:", help="where the notes are kept")
arguments.add_argument("--http", metavar="ADDRESS", help="serve over HTTP at this address")
options = arguments.parse_args()

# FastMCP runs synchronous functions in threads, and SQLite serializes them.
db = sqlite3.connect(options.database, isolation_level=None, check_same_thread=False)
db.row_factory = sqlite3.Row
db.execute(
    "CREATE TABLE IF NOT EXISTS"
    " notes(id INTEGER PRIMARY KEY, title TEXT NOT NULL, body TEXT NOT NULL)"
)

mcp = FastMCP("notes", version="1.0.0", instructions="Keep notes, and search them.")

NoteId = Annotated[int, Field(description="The id of the note")]


class NewNote(BaseModel):
    title: str = Field(description="The title of the note")
    body: str = Field(description="The text of the note")


class Note(NewNote):
    id: int = Field(description="The id of the note")


class Confirmation(BaseModel):
    confirm: bool = Field(description="Whether to delete the note")


def insert(title: str, body: str) -> Note:
    query = "INSERT INTO notes(title, body) VALUES (?, ?) RETURNING *"
    [row] = db.execute(query, (title, body)).fetchall()
    return Note(**row)


def select(condition: str, *values) -> list[Note]:
    return [Note(**row) for row in db.execute(f"SELECT * FROM notes {condition}", values)]


def find(id: int) -> Note | None:
    return next(iter(select("WHERE id = ?", id)), None)


def find_for_tool(id: int) -> Note:
    if note := find(id):
        return note
    raise ToolError(f"there is no note {id}")


def is_modern(ctx: Context) -> bool:
    return ctx.request_context.protocol_version >= "2026-07-28"


@mcp.tool
def add(
    title: Annotated[str, Field(description="The title of the note")],
    body: Annotated[str, Field(description="The text of the note")],
) -> Note:
    """Add a note."""
    return insert(title, body)


@mcp.tool(annotations=ToolAnnotations(read_only_hint=True))
def search(
    query: Annotated[str, Field(description="What the title or the text must contain")],
    limit: Annotated[int, Field(description="The most notes to return", ge=0)] = 10,
) -> list[Note]:
    """Search the notes."""
    condition = "WHERE instr(title, ?1) OR instr(body, ?1) ORDER BY id LIMIT ?2"
    return select(condition, query, limit)


@mcp.tool(annotations=ToolAnnotations(destructive_hint=True), output_schema=None)
async def delete(id: NoteId, ctx: Context) -> str | InputRequiredResult:
    """Delete a note, after the user has confirmed it."""
    note = find_for_tool(id)
    question = f"Delete the note {note.title!r}?"
    if not is_modern(ctx):
        answer = await ctx.elicit(question, Confirmation)
        confirmed = answer.action == "accept" and answer.data.confirm
    elif ctx.input_responses is None:
        params = ElicitRequestFormParams(
            message=question, requested_schema=Confirmation.model_json_schema()
        )
        return InputRequiredResult(input_requests={"delete": ElicitRequest(params=params)})
    else:
        answer = ctx.input_responses["delete"]
        confirmed = answer.action == "accept" and answer.content.get("confirm") is True
    if not confirmed:
        return f"note {id} was not deleted"
    db.execute("DELETE FROM notes WHERE id = ?", (id,))
    return f"note {id} was deleted"


@mcp.tool(output_schema=None)
async def summarize(id: NoteId, ctx: Context) -> str | InputRequiredResult:
    """Summarize a note in one sentence, with the client's model."""
    note = find_for_tool(id)
    question = f"Summarize this note in one sentence.\n\n{note.title}\n\n{note.body}"
    messages = [SamplingMessage(role="user", content=TextContent(type="text", text=question))]
    if not is_modern(ctx):
        answer = await ctx.session.create_message(
            messages, max_tokens=200, related_request_id=ctx.request_id
        )
    elif ctx.input_responses is None:
        params = CreateMessageRequestParams(messages=messages, max_tokens=200)
        return InputRequiredResult(input_requests={"summary": CreateMessageRequest(params=params)})
    else:
        answer = ctx.input_responses["summary"]
    if isinstance(answer, CreateMessageResult) and isinstance(answer.content, TextContent):
        return answer.content.text
    raise ToolError("the client's model did not answer with text")


@mcp.tool(name="import")
async def import_notes(
    notes: Annotated[list[NewNote], Field(description="The notes to add")], ctx: Context
) -> str:
    """Add many notes."""
    for done, note in enumerate(notes, 1):
        # The call can be cancelled here.
        await asyncio.to_thread(insert, note.title, note.body)
        await ctx.report_progress(done, len(notes), f"added {note.title!r}")
    return f"{len(notes)} notes were added"


@mcp.resource("notes://all", name="all", mime_type="application/json")
def all_notes() -> str:
    """All notes."""
    return json.dumps([note.model_dump() for note in select("ORDER BY id")])


@mcp.resource("notes://{id}", name="note", mime_type="text/plain")
def one_note(id: int) -> str:
    """A note."""
    if note := find(id):
        return note.body
    raise ResourceError(f"there is no note {id}")


@mcp.completion
def complete(ref, argument, context):
    if isinstance(ref, ResourceTemplateReference) and argument.name == "id":
        ids = [str(note.id) for note in select("ORDER BY id")]
        return [id for id in ids if id.startswith(argument.value)][:100]
    return None


@mcp.prompt
def review(id: NoteId) -> str:
    """Review a note."""
    if note := find(id):
        return f"Review this note.\n\n{note.title}\n\n{note.body}"
    raise PromptError(f"there is no note {id}")


if __name__ == "__main__":
    if options.http is None:
        mcp.run("stdio", show_banner=False)
    else:
        host, port = options.http.rsplit(":", 1)
        mcp.run("http", show_banner=False, host=host, port=int(port), path="/mcp")
