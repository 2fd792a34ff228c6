#!/usr/bin/env python3
"""PyPI mcp 1.x signs in at the authorization server of a protected MCP server by its own OAuth flow.

    oauth_py_mcp1.py NODE URL TOOL ARGUMENTS USER PASSWORD PAUSE

As oauth-ts-client2.mjs, whose output it has; `person.mjs` is run by NODE. A URL that ends in /sse is spoken to by HTTP+SSE.
"""

import asyncio
import contextlib
import json
import os
import sys
from urllib.parse import parse_qs, urlsplit

sys.dont_write_bytecode = True

try:
    import httpx
    from mcp import ClientSession
    from mcp.client.auth import OAuthClientProvider
    from mcp.client.sse import sse_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared.auth import OAuthClientMetadata
except ImportError as e:
    print(f"not installed: run script/install-test-deps first ({e})", file=sys.stderr)
    sys.exit(77)

NODE, URL, TOOL, ARGUMENTS, USER, PASSWORD, PAUSE = sys.argv[1:]
HERE = os.path.dirname(os.path.abspath(__file__))


class Storage:
    def __init__(self):
        self.client, self.tokens, self.saves = None, None, []

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens
        self.saves.append(tokens)

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


async def main():
    arrived = asyncio.get_running_loop().create_future()

    async def answer(reader, writer):
        target = (await reader.readline()).split()[1].decode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nback")
        await writer.drain()
        writer.close()
        at = urlsplit(target)
        if at.path == "/callback" and not arrived.done():
            arrived.set_result({name: values[0] for name, values in parse_qs(at.query).items()})

    door = await asyncio.start_server(answer, "127.0.0.1", 0)
    back = f"http://127.0.0.1:{door.sockets[0].getsockname()[1]}/callback"
    storage, said = Storage(), {}

    async def redirect(url):
        command = [NODE, os.path.join(HERE, "person.mjs"), url, USER, PASSWORD]
        person = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        out, _ = await person.communicate()
        said.update(json.loads(out))

    async def callback():
        query = await asyncio.wait_for(arrived, 120)
        return query["code"], query.get("state")

    metadata = OAuthClientMetadata(
        client_name="Python client", redirect_uris=[back], token_endpoint_auth_method="none"
    )
    provider = OAuthClientProvider(URL, metadata, storage, redirect_handler=redirect, callback_handler=callback)
    async with contextlib.AsyncExitStack() as stack:
        if URL.endswith("/sse"):
            streams = await stack.enter_async_context(sse_client(URL, auth=provider))
        else:
            http = httpx.AsyncClient(auth=provider, timeout=httpx.Timeout(30, read=300), follow_redirects=True)
            http = await stack.enter_async_context(http)
            streams = await stack.enter_async_context(streamable_http_client(URL, http_client=http))
        async with ClientSession(streams[0], streams[1]) as client:
            await client.initialize()

            async def call():
                return (await client.call_tool(TOOL, json.loads(ARGUMENTS))).content[0].text

            results = [await call()]
            tools = [tool.name for tool in (await client.list_tools()).tools]
            await asyncio.sleep(float(PAUSE))
            results.append(await call())
    door.close()
    first, *later = storage.saves
    info = storage.client
    print(json.dumps({
        "pages": said["pages"], "tools": tools, "results": results,
        "registered": bool(info and info.client_id and not info.client_secret), "scope": first.scope,
        "refreshed": any(one.refresh_token and one.refresh_token != first.refresh_token for one in later),
    }))


asyncio.run(main())
