#!/usr/bin/env python3
"""The shared scenario with PyPI mcp 1.x (initialize era only)."""

import contextlib
import os
import ssl
import sys
from datetime import timedelta

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
sys.dont_write_bytecode = True

try:
    import httpx
    from mcp import ClientSession, StdioServerParameters, types
    from mcp.client.sse import sse_client
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client
except ImportError as e:
    print(f"not installed: run script/install-test-deps first ({e})", file=sys.stderr)
    sys.exit(77)

import scenario


def tls():
    """Whom the environment trusts, and the client certificate it names."""
    context = ssl.create_default_context()
    if os.environ.get("MCP_TEST_CERT"):
        context.load_cert_chain(os.environ["MCP_TEST_CERT"], os.environ["MCP_TEST_KEY"])
    return context


class Session:
    templates_member = "resourceTemplates"

    def __init__(self, session, initialized):
        self.s, self.initialized = session, initialized

    def info(self):
        return {
            "negotiatedEra": "old",
            "protocolVersion": self.initialized.protocolVersion,
            "serverInfo": scenario.plain(self.initialized.serverInfo),
            "serverCapabilities": scenario.plain(self.initialized.capabilities),
            "instructions": self.initialized.instructions,
        }

    def capabilities(self):
        return self.initialized.capabilities

    @staticmethod
    def page(cursor):
        return types.PaginatedRequestParams(cursor=cursor) if cursor else None

    async def tools(self, cursor):
        return await self.s.list_tools(params=self.page(cursor))

    async def prompts(self, cursor):
        return await self.s.list_prompts(params=self.page(cursor))

    async def resources(self, cursor):
        return await self.s.list_resources(params=self.page(cursor))

    async def templates(self, cursor):
        return await self.s.list_resource_templates(params=self.page(cursor))

    async def read(self, uri):
        return await self.s.read_resource(uri)

    async def get_prompt(self, p):
        return await self.s.get_prompt(p["name"], p["arguments"])

    async def complete(self, p):
        kind = types.PromptReference if p["ref"]["type"] == "ref/prompt" else types.ResourceTemplateReference
        context = (p.get("context") or {}).get("arguments")
        return await self.s.complete(kind.model_validate(p["ref"]), p["argument"], context)

    async def call(self, c, timeout, on_progress):
        limit = timedelta(seconds=timeout)
        return await self.s.call_tool(c["name"], c["arguments"], read_timeout_seconds=limit, progress_callback=on_progress)

    async def set_log_level(self, level):
        await self.s.set_logging_level(level)

    async def listen(self, _listchanged, uris):
        for uri in uris:
            await self.s.subscribe_resource(uri)
        return {"mode": "old", "uris": uris}


class AppsSession(ClientSession):
    """A session that declares MCP Apps, for which this library has no option."""

    async def send_request(self, request, *args, **options):
        if isinstance(request.root, types.InitializeRequest):
            request.root.params.capabilities.extensions = {scenario.APPS: scenario.APPS_SETTINGS}
        return await super().send_request(request, *args, **options)


class Adapter:
    name = "py-mcp1"
    eras = ["old"]

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
            if isinstance(item, (types.ServerNotification, Exception)):
                hooks.notification(item)

        async with contextlib.AsyncExitStack() as stack:
            if o.stdio:
                params = StdioServerParameters(command=o.stdio[0], args=o.stdio[1:], env=dict(os.environ))
                transport = stdio_client(params)
            elif o.sse:
                transport = sse_client(o.sse, headers=o.headers)
            else:
                timeout = httpx.Timeout(30, read=300)
                http = httpx.AsyncClient(headers=o.headers, timeout=timeout, follow_redirects=True, verify=tls())
                transport = streamable_http_client(o.url, http_client=await stack.enter_async_context(http))
            read, write, *_ = await stack.enter_async_context(hooks.tapped(transport))
            kind = AppsSession if "apps" in o.caps else ClientSession
            session = kind(
                read,
                write,
                elicitation_callback=elicitation if "elicitation" in o.caps else None,
                sampling_callback=sampling if "sampling" in o.caps else None,
                list_roots_callback=roots if "roots" in o.caps else None,
                logging_callback=log,
                message_handler=message,
                client_info=types.Implementation(name="signalbox-py-mcp1", version="1.0.0"),
            )
            await stack.enter_async_context(session)
            yield Session(session, await session.initialize())


scenario.main(Adapter())
