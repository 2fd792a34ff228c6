"""The scenario shared by the Python clients: the same options and the same JSON document as lib/scenario.mjs.

A client script gives an adapter (see main()); this file parses the command line, runs the steps and prints the document.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import traceback
from typing import Any

import anyio

STEPS = ["tools", "call", "prompts", "resources", "complete", "elicit", "progress", "logs", "links", "listchanged"]
ASKED = ["elicitation", "sampling", "roots"]
CAPS = [*ASKED, "apps"]
# Extension that a client declares which shows the pages of MCP Apps.
APPS = "io.modelcontextprotocol/ui"
APPS_SETTINGS = {"mimeTypes": ["text/html;profile=mcp-app"]}
# Stands for the URI of the last resource link, in the arguments of a call.
LINK = "$link"


class UsageError(Exception):
    pass


class Options:
    def __init__(self) -> None:
        self.url: str | None = None
        self.sse: str | None = None
        self.stdio: list[str] | None = None
        self.era: str | None = None
        self.headers: dict[str, str] = {}
        self.steps: list[str] | None = None
        self.caps: list[str] | None = None
        self.tool: str | None = None
        self.calls: list[dict[str, Any]] = []
        self.parallel = False
        self.call_timeout = 60.0
        self.prompts: list[dict[str, Any]] = []
        self.reads: list[str] = []
        self.subscribe: list[str] = []
        self.completes: list[dict[str, Any]] = []
        self.answer = "answered"
        self.action = "accept"
        self.progress = False
        self.log_level: str | None = None
        self.linger = 0.0
        self.timeout = 120.0
        self.await_tools = False
        self.trace = False
        self.allow_errors = False


def pair(text: str, option: str) -> dict[str, Any]:
    name, eq, value = text.partition("=")
    if not name:
        raise UsageError(f"{option} needs NAME=JSON")
    try:
        return {"name": name, "arguments": json.loads(value) if eq else {}}
    except ValueError as e:
        raise UsageError(f"{option} {name}: not JSON: {e}") from e


def names(text: str, allowed: list[str], option: str) -> list[str]:
    out = [s.strip() for s in text.split(",") if s.strip()]
    for s in out:
        if s not in allowed:
            raise UsageError(f"{option}: unknown {s}; known: {','.join(allowed)}")
    return out


def parse_args(argv: list[str]) -> Options:
    o = Options()
    rest = list(argv)

    def value(arg: str) -> str:
        if not rest:
            raise UsageError(f"{arg} needs a value")
        return rest.pop(0)

    def number(arg: str) -> float:
        try:
            n = float(value(arg))
        except ValueError as e:
            raise UsageError(f"{arg} needs a number of seconds") from e
        if not 0 <= n < float("inf"):
            raise UsageError(f"{arg} needs a number of seconds")
        return n

    while rest:
        arg = rest.pop(0)
        match arg:
            case "--url":
                o.url = value(arg)
            case "--sse":
                o.sse = value(arg)
            case "--stdio":
                o.stdio, rest = rest, []
            case "--era":
                o.era = value(arg)
            case "--header":
                name, colon, text = value(arg).partition(":")
                if not colon or not name:
                    raise UsageError('--header needs "Name: value"')
                o.headers[name.strip()] = text.strip()
            case "--steps":
                o.steps = names(value(arg), STEPS, arg)
            case "--caps":
                o.caps = names(value(arg), CAPS, arg)
            case "--tool":
                o.tool = value(arg)
            case "--call":
                o.calls.append(pair(value(arg), arg))
            case "--parallel":
                o.parallel = True
            case "--call-timeout":
                o.call_timeout = number(arg)
            case "--get-prompt":
                o.prompts.append(pair(value(arg), arg))
            case "--read":
                o.reads.append(value(arg))
            case "--subscribe":
                o.subscribe.append(value(arg))
            case "--complete":
                o.completes.append(json.loads(value(arg)))
            case "--answer":
                o.answer = value(arg)
            case "--action":
                o.action = value(arg)
            case "--progress":
                o.progress = True
            case "--log-level":
                o.log_level = value(arg)
            case "--linger":
                o.linger = number(arg)
            case "--await-tools":
                o.await_tools = True
            case "--timeout":
                o.timeout = number(arg)
            case "--trace":
                o.trace = True
            case "--allow-errors":
                o.allow_errors = True
            case _:
                raise UsageError(f"unknown option {arg}")
    if sum(x is not None for x in (o.url, o.sse, o.stdio)) != 1:
        raise UsageError("give one of --url, --sse, --stdio")
    if o.stdio is not None and not o.stdio:
        raise UsageError("--stdio needs a command")
    if o.era not in (None, "old", "new", "auto"):
        raise UsageError("--era is old, new or auto")
    if o.action not in ("accept", "decline", "cancel"):
        raise UsageError("--action is accept, decline or cancel")
    # Naming a passive step switches on what it needs.
    named = o.steps or []
    if "elicit" in named and o.caps is None:
        o.caps = list(ASKED)
    if "progress" in named:
        o.progress = True
    if "logs" in named and o.log_level is None:
        o.log_level = "debug"
    o.caps = o.caps or []
    return o


def form_answer(schema: dict[str, Any] | None, text: str) -> dict[str, Any]:
    """TEXT in the first plain string property, and a value for each other required one."""
    schema = schema or {}
    props: dict[str, dict[str, Any]] = schema.get("properties") or {}

    def is_string(p: dict[str, Any]) -> bool:
        return p.get("type") == "string" and "enum" not in p and "oneOf" not in p

    content: dict[str, Any] = {}
    first = next((n for n, p in props.items() if is_string(p) and "format" not in p), None)
    first = first or next((n for n, p in props.items() if is_string(p)), None)
    if first:
        content[first] = text
    for name, p in props.items():
        if name in content or name not in (schema.get("required") or []):
            continue
        items = p.get("items") or {}
        if "default" in p:
            content[name] = p["default"]
        elif p.get("enum"):
            content[name] = p["enum"][0]
        elif p.get("oneOf"):
            content[name] = p["oneOf"][0].get("const")
        elif p.get("type") == "boolean":
            content[name] = True
        elif p.get("type") in ("integer", "number"):
            content[name] = p.get("minimum", 1)
        elif p.get("type") == "array":
            choices = items.get("enum") or [c.get("const") for c in items.get("anyOf") or []] or [text]
            content[name] = [choices[0]]
        else:
            content[name] = text
    return content


def plain(value: Any) -> Any:
    """A model of the library as plain JSON, without the fields nobody set."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)
    return value


def error_object(e: BaseException) -> dict[str, Any]:
    # Task groups wrap the one real error.
    while isinstance(e, BaseExceptionGroup) and len(e.exceptions) == 1:
        e = e.exceptions[0]
    out: dict[str, Any] = {"message": str(e) or repr(e), "type": type(e).__name__}
    data = getattr(e, "error", None)
    if hasattr(data, "code"):
        out["message"] = data.message
        out["code"] = data.code
        if data.data is not None:
            out["data"] = data.data
    response = getattr(e, "response", None)
    if hasattr(response, "status_code"):
        out["status"] = response.status_code
    if isinstance(e, BaseExceptionGroup):
        out["causes"] = [error_object(x) for x in e.exceptions]
    return out


class Tap:
    """A stream that records each message and is otherwise the stream it wraps."""

    def __init__(self, inner: Any, direction: str, wire: list[dict[str, Any]]) -> None:
        self._inner = inner
        self._direction = direction
        self._wire = wire

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _record(self, item: Any) -> None:
        message = getattr(item, "message", None)
        if hasattr(message, "model_dump"):
            dumped = message.model_dump(mode="json", by_alias=True, exclude_unset=True)
            self._wire.append({"dir": self._direction, "message": dumped})

    async def send(self, item: Any) -> None:
        self._record(item)
        await self._inner.send(item)

    async def receive(self) -> Any:
        item = await self._inner.receive()
        self._record(item)
        return item

    def __aiter__(self) -> Tap:
        return self

    async def __anext__(self) -> Any:
        item = await self._inner.__anext__()
        self._record(item)
        return item

    async def __aenter__(self) -> Tap:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *exc: Any) -> Any:
        return await self._inner.__aexit__(*exc)


class Hooks:
    """What the server asks of or tells the client, recorded into the document."""

    def __init__(self, o: Options, doc: dict[str, Any], wire: list[dict[str, Any]]) -> None:
        self.o, self.doc, self.wire = o, doc, wire

    def received(self, method: str, params: Any, answer: dict[str, Any]) -> dict[str, Any]:
        self.doc["serverRequests"].append({"method": method, "params": plain(params), "answer": answer})
        return answer

    def elicitation(self, params: Any) -> dict[str, Any]:
        p = plain(params) or {}
        answer: dict[str, Any] = {"action": self.o.action}
        if self.o.action == "accept" and p.get("mode") != "url":
            answer["content"] = form_answer(p.get("requestedSchema"), self.o.answer)
        return self.received("elicitation/create", p, answer)

    def sampling(self, params: Any) -> dict[str, Any]:
        content = {"type": "text", "text": "sampled"}
        answer = {"model": "signalbox-test-model", "role": "assistant", "stopReason": "endTurn", "content": content}
        return self.received("sampling/createMessage", params, answer)

    def roots(self) -> dict[str, Any]:
        return self.received("roots/list", None, {"roots": [{"uri": "file:///tmp", "name": "tmp"}]})

    def log(self, params: Any) -> None:
        self.doc["logs"].append(plain(params))

    def notification(self, message: Any) -> None:
        message = getattr(message, "root", message)
        if isinstance(message, Exception):
            self.doc.setdefault("transportErrors", []).append(error_object(message))
            return
        method = getattr(message, "method", "")
        if method.endswith("/list_changed"):
            self.doc["listChanged"][method.split("/")[1]] += 1
        elif method == "notifications/resources/updated":
            self.doc["resourceUpdates"].append(plain(message.params))

    @contextlib.asynccontextmanager
    async def tapped(self, transport: Any):
        async with transport as streams:
            yield (Tap(streams[0], "recv", self.wire), Tap(streams[1], "send", self.wire), *streams[2:])


async def paged(fetch: Any, member: str) -> list[Any]:
    out: list[Any] = []
    cursor = None
    while True:
        page = await fetch(cursor)
        out += getattr(page, member)
        cursor = getattr(page, "nextCursor", None) or getattr(page, "next_cursor", None)
        if cursor is None:
            return out


async def run(adapter: Any, o: Options, doc: dict[str, Any], wire: list[dict[str, Any]]) -> None:
    hooks = Hooks(o, doc, wire)

    def fail(step: str, e: BaseException) -> dict[str, Any]:
        error = error_object(e)
        doc["errors"].append({"step": step, **error})
        return error

    async def attempt(step: str, coroutine: Any) -> Any:
        try:
            return await coroutine
        except Exception as e:
            return {"error": fail(step, e)}

    async def result(coroutine: Any) -> dict[str, Any]:
        return {"result": plain(await coroutine)}

    def sent(method: str, start: int) -> int:
        return sum(w["dir"] == "send" and w["message"].get("method") == method for w in wire[start:])

    def raw_items(member: str, start: int) -> list[Any]:
        results = [w["message"].get("result") or {} for w in wire[start:] if w["dir"] == "recv"]
        return [item for r in results for item in r.get(member) or []]

    stage = "connect"
    try:
        async with adapter.open(o, hooks) as s:
            doc.update(s.info())
            stage = "steps"
            steps = doc["steps"]
            caps = plain(s.capabilities()) or {}

            def want(step: str, default: bool) -> bool:
                return step in o.steps if o.steps is not None else default

            # Logs may come without the capability, but only a server that declares it can be asked for a level.
            if o.log_level and ("logging" in caps or doc["negotiatedEra"] == "new"):
                await attempt("logs", s.set_log_level(o.log_level))
            listchanged = want("listchanged", False)
            if listchanged or o.subscribe:
                steps["subscribe"] = await attempt("subscribe", s.listen(listchanged, o.subscribe))
            if want("tools", "tools" in caps):
                start = len(wire)

                async def tools() -> dict[str, Any]:
                    found = [plain(t) for t in await paged(s.tools, "tools")]
                    told = 0
                    while o.await_tools and not found:
                        # Changes may have been told before the list came.
                        while doc["listChanged"]["tools"] <= told:
                            await anyio.sleep(0.05)
                        told = doc["listChanged"]["tools"]
                        found = [plain(t) for t in await paged(s.tools, "tools")]
                    name = o.tool or (found[0]["name"] if found else None)
                    raw = raw_items("tools", start)
                    return {
                        "count": len(found),
                        "names": [t["name"] for t in found],
                        "pages": sent("tools/list", start),
                        "tool": next((t for t in found if t["name"] == name), None),
                        "rawTool": next((t for t in raw if t["name"] == name), None),
                    }

                steps["tools"] = await attempt("tools", tools())
            if want("prompts", "prompts" in caps):
                start = len(wire)

                async def prompts() -> dict[str, Any]:
                    found = [plain(p) for p in await paged(s.prompts, "prompts")]
                    pages = sent("prompts/list", start)
                    return {"count": len(found), "names": [p["name"] for p in found], "pages": pages, "prompts": found}

                steps["prompts"] = await attempt("prompts", prompts())
                steps["getPrompt"] = []
                for p in o.prompts:
                    out = await attempt(f"getPrompt {p['name']}", result(s.get_prompt(p)))
                    steps["getPrompt"].append({**p, **out})
            if want("resources", "resources" in caps):
                start = len(wire)

                async def resources() -> dict[str, Any]:
                    found = [plain(r) for r in await paged(s.resources, "resources")]
                    templates = [plain(t) for t in await paged(s.templates, s.templates_member)]
                    return {
                        "count": len(found),
                        "uris": [r["uri"] for r in found],
                        "pages": sent("resources/list", start),
                        "templates": [t["uriTemplate"] for t in templates],
                        "resources": found,
                        "resourceTemplates": templates,
                    }

                steps["resources"] = await attempt("resources", resources())
                steps["read"] = []
                for uri in o.reads:
                    steps["read"].append({"uri": uri, **await attempt(f"read {uri}", result(s.read(uri)))})
            if want("complete", bool(o.completes)):
                steps["complete"] = []
                for params in o.completes:
                    steps["complete"].append({"params": params, **await attempt("complete", result(s.complete(params)))})
            # elicit, progress, logs and links happen inside calls, so any of them runs the calls too.
            if o.calls and (o.steps is None or {"call", "elicit", "progress", "logs", "links"} & set(o.steps)):
                outcomes: list[Any] = [None] * len(o.calls)
                link = LINK

                async def follow(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
                    """Reads what a result links to."""
                    nonlocal link
                    read = []
                    for uri in [block["uri"] for block in content if block["type"] == "resource_link"]:
                        link = uri
                        read.append({"uri": uri, **await attempt(f"read {uri}", result(s.read(uri)))})
                    return read

                async def one(index: int, asked: dict[str, Any]) -> None:
                    arguments = {k: link if v == LINK else v for k, v in asked["arguments"].items()}
                    c = {**asked, "arguments": arguments}
                    started = time.monotonic()
                    seen = 0

                    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
                        nonlocal seen
                        seen += 1
                        fields = {"progress": progress, "total": total, "message": message}
                        doc["progress"]["count"] += 1
                        doc["progress"]["notifications"].append({k: v for k, v in fields.items() if v is not None})

                    call = s.call(c, timeout=o.call_timeout, on_progress=on_progress if o.progress else None)
                    out = await attempt(f"call {c['name']}", result(call))
                    ms = round((time.monotonic() - started) * 1000)
                    if want("links", False):
                        out["links"] = await follow((out.get("result") or {}).get("content") or [])
                    outcomes[index] = {**c, **out, "progress": seen, "ms": ms}

                if o.parallel:
                    async with anyio.create_task_group() as group:
                        for index, c in enumerate(o.calls):
                            group.start_soon(one, index, c)
                else:
                    for index, c in enumerate(o.calls):
                        await one(index, c)
                steps["call"] = outcomes
            if o.linger:
                await anyio.sleep(o.linger)
            stage = "close"
    except Exception as e:
        if stage == "connect":
            doc["fatal"] = True
        if os.environ.get("SIGNALBOX_TEST_DEBUG"):
            traceback.print_exc()
        error = error_object(e)
        if stage == "close" and error["type"] in ("BrokenResourceError", "ClosedResourceError"):
            # mcp 1.x: a message that arrives while the streams close. Not a fault of the server.
            doc.setdefault("transportErrors", []).append(error)
        else:
            fail(stage, e)


def main(adapter: Any) -> None:
    """adapter: name, eras, open(o, hooks) -> async context manager of a session (see the client scripts)."""
    try:
        o = parse_args(sys.argv[1:])
        o.era = o.era or adapter.eras[0]
        if o.era not in adapter.eras:
            raise UsageError(f"{adapter.name} knows --era {'|'.join(adapter.eras)}")
    except (UsageError, ValueError) as e:
        print(f"{adapter.name}: {e}", file=sys.stderr)
        sys.exit(2)
    wire: list[dict[str, Any]] = []
    doc: dict[str, Any] = {
        "client": adapter.name,
        "era": o.era,
        "transport": "stdio" if o.stdio else "sse" if o.sse else "http",
        "ok": False,
        "serverRequests": [],
        "progress": {"count": 0, "received": 0, "notifications": []},
        "logs": [],
        "listChanged": {"tools": 0, "prompts": 0, "resources": 0},
        "resourceUpdates": [],
        "steps": {},
        "errors": [],
    }

    async def bounded() -> None:
        with anyio.move_on_after(o.timeout) as scope:
            await run(adapter, o, doc, wire)
        if scope.cancelled_caught:
            doc["fatal"] = True
            doc["errors"].append({"step": "timeout", "message": f"not finished after {o.timeout:g} s"})

    anyio.run(bounded)
    progress = [w for w in wire if w["dir"] == "recv" and w["message"].get("method") == "notifications/progress"]
    doc["progress"]["received"] = len(progress)
    doc["ok"] = not doc["errors"]
    if o.trace:
        doc["wire"] = wire
    print(json.dumps(doc, indent=1, ensure_ascii=False), flush=True)
    sys.exit(0 if doc["ok"] or (o.allow_errors and not doc.get("fatal")) else 1)
