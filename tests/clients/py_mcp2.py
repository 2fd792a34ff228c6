#!/usr/bin/env python3
"""The shared scenario with PyPI mcp 2.x. --era old: initialize; new: 2026-07-28 only; auto: probe, then fall back."""

import contextlib
import os
import sys
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
sys.dont_write_bytecode = True

try:
    import httpx2
    import mcp_types as types
    from mcp import Client, StdioServerParameters
    from mcp.client import advertise
    from mcp.client.sse import sse_client
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client
except ImportError as e:
    print(f"not installed: run script/install-test-deps first ({e})", file=sys.stderr)
    sys.exit(77)

import scenario

# setLevel and subscribe are deprecated, and are what an old server needs.
warnings.simplefilter("ignore")


class Session:
    templates_member = "resource_templates"

    def __init__(self, client, stack):
        self.c, self.stack = client, stack
        self.modern = client.protocol_version >= "2026-07-28"

    def info(self):
        return {
            "negotiatedEra": "new" if self.modern else "old",
            "protocolVersion": self.c.protocol_version,
            "serverInfo": scenario.plain(self.c.server_info),
            "serverCapabilities": scenario.plain(self.c.server_capabilities),
            "instructions": self.c.instructions,
        }

    def capabilities(self):
        return self.c.server_capabilities

    async def tools(self, cursor):
        return await self.c.list_tools(cursor=cursor)

    async def prompts(self, cursor):
        return await self.c.list_prompts(cursor=cursor)

    async def resources(self, cursor):
        return await self.c.list_resources(cursor=cursor)

    async def templates(self, cursor):
        return await self.c.list_resource_templates(cursor=cursor)

    async def read(self, uri):
        return await self.c.read_resource(uri)

    async def get_prompt(self, p):
        return await self.c.get_prompt(p["name"], p["arguments"])

    async def complete(self, p):
        kind = types.PromptReference if p["ref"]["type"] == "ref/prompt" else types.ResourceTemplateReference
        context = (p.get("context") or {}).get("arguments")
        return await self.c.complete(kind.model_validate(p["ref"]), p["argument"], context)

    async def call(self, c, timeout, on_progress):
        return await self.c.call_tool(
            c["name"], c["arguments"], read_timeout_seconds=timeout, progress_callback=on_progress
        )

    async def set_log_level(self, level):
        if not self.modern:  # a modern connection asks on each request: Client(log_level=...)
            await self.c.set_logging_level(level)

    async def listen(self, listchanged, uris):
        if not self.modern:
            for uri in uris:
                await self.c.subscribe_resource(uri)
            return {"mode": "old", "uris": uris}
        wanted = dict.fromkeys(("tools_list_changed", "prompts_list_changed", "resources_list_changed"), listchanged)
        subscription = await self.stack.enter_async_context(self.c.listen(**wanted, resource_subscriptions=uris))
        return {"mode": "new", "honored": scenario.plain(subscription.honored)}


class Adapter:
    name = "py-mcp2"
    eras = ["auto", "old", "new"]

    @contextlib.asynccontextmanager
    async def open(self, o, hooks):
        async def elicitation(_context, params):
            return types.ElicitResult.model_validate(hooks.elicitation(params))

        async def sampling(_context, params):
            return types.CreateMessageResult.model_validate(hooks.sampling(params))

        async def roots(_context):
            return types.ListRootsResult.model_validate(hooks.roots())

        async def log(params):
            hooks.log(params)

        async def message(item):
            hooks.notification(item)

        async with contextlib.AsyncExitStack() as stack:
            if o.stdio:
                params = StdioServerParameters(command=o.stdio[0], args=o.stdio[1:], env=dict(os.environ))
                transport = stdio_client(params)
            elif o.sse:
                transport = sse_client(o.sse, headers=o.headers)
            else:
                timeout = httpx2.Timeout(30, read=300)
                http = httpx2.AsyncClient(headers=o.headers, timeout=timeout, follow_redirects=True)
                transport = streamable_http_client(o.url, http_client=await stack.enter_async_context(http))
            client = Client(
                hooks.tapped(transport),
                mode={"old": "legacy", "new": "2026-07-28", "auto": "auto"}[o.era],
                elicitation_callback=elicitation if "elicitation" in o.caps else None,
                sampling_callback=sampling if "sampling" in o.caps else None,
                list_roots_callback=roots if "roots" in o.caps else None,
                logging_callback=log,
                log_level=o.log_level,
                extensions=[advertise(scenario.APPS, scenario.APPS_SETTINGS)] if "apps" in o.caps else None,
                message_handler=message,
                client_info=types.Implementation(name="signalbox-py-mcp2", version="1.0.0"),
            )
            await stack.enter_async_context(client)
            if o.era == "new":  # a pinned version skips server/discover, and so knows no capabilities
                raw = await client.session.send_discover("2026-07-28")
                client.session.adopt(types.DiscoverResult.model_validate(raw))
            # Subscriptions close before the connection does.
            yield Session(client, await stack.enter_async_context(contextlib.AsyncExitStack()))


scenario.main(Adapter())
