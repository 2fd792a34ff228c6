#!/usr/bin/env python3
"""A small real server made with PyPI mcp 2.x, which speaks both eras: `stdio`, or `http PORT` on 127.0.0.1 (path /mcp)."""

import sys
import warnings
from typing import Annotated

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp_types import Completion, CreateMessageResult, ListRootsResult, SamplingMessage, TextContent
from pydantic import BaseModel

warnings.simplefilter("ignore")
server = MCPServer("signalbox-py-mcp2-server", version="1.0.0", instructions="A server for tests.")


class Name(BaseModel):
    name: str


def ask_name() -> Elicit[Name]:
    return Elicit("What is your name?", Name)


def ask_model() -> Sample:
    message = SamplingMessage(role="user", content=TextContent(type="text", text="Say something."))
    return Sample([message], max_tokens=10)


def ask_roots() -> ListRoots:
    return ListRoots()


@server.tool()
def echo(message: str) -> str:
    """Echoes the message."""
    return f"Echo: {message}"


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers; the result is structured."""
    return a + b


@server.tool()
def fail() -> str:
    """Always fails: the result has isError."""
    raise ValueError("it failed on purpose")


@server.tool()
def greet(who: Annotated[Name, Resolve(ask_name)]) -> str:
    """Asks the client for a name (elicitation)."""
    return f"Hello {who.name}"


@server.tool()
def sample(answer: Annotated[CreateMessageResult, Resolve(ask_model)]) -> str:
    """Asks the client's model (sampling)."""
    return f"Model said: {getattr(answer.content, 'text', answer.content)}"


@server.tool()
def roots(found: Annotated[ListRootsResult, Resolve(ask_roots)]) -> str:
    """Asks the client for its roots."""
    return " ".join(str(r.uri) for r in found.roots)


@server.tool()
async def work(steps: int, ctx: Context, delay: float = 0.05) -> str:
    """Reports progress and logs at each step."""
    for step in range(1, steps + 1):
        await anyio.sleep(delay)
        await ctx.report_progress(step, steps, f"step {step}")
        await ctx.info(f"step {step} of {steps}")
    return f"{steps} steps"


@server.tool()
async def change(ctx: Context) -> str:
    """Tells everyone who listens that the three lists and test://static changed."""
    await ctx.notify_tools_changed()
    await ctx.notify_prompts_changed()
    await ctx.notify_resources_changed()
    await ctx.notify_resource_updated("test://static")
    return "changed"


@server.resource("test://static", mime_type="text/plain")
def static() -> str:
    return "static text"


@server.resource("test://item/{name}", mime_type="text/plain")
def item(name: str) -> str:
    return f"item {name}"


@server.prompt()
def hello(name: str) -> str:
    """Greets someone."""
    return f"Say hello to {name}."


@server.completion()
async def complete(_ref, argument, _context):
    values = [v for v in ("alpha", "beta", "gamma") if v.startswith(argument.value)]
    return Completion(values=values, total=len(values), has_more=False)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["stdio"]:
            server.run("stdio")
        case ["http", port]:
            server.run("streamable-http", host="127.0.0.1", port=int(port))
        case _:
            print("usage: py_mcp2_server.py stdio | http PORT", file=sys.stderr)
            sys.exit(2)
