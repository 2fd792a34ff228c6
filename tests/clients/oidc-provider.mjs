#!/usr/bin/env node
// npm oidc-provider, a certified OpenID provider, with its development pages: whoever gives a name is that person.
//
//   oidc-provider.mjs PORT REDIRECT_URI
//
// Knows one client, `box` with the secret `made-up-openid-secret`. Everybody is in the group `ops`. Prints `listening ISSUER`.
import { createRequire } from 'node:module';
import { join } from 'node:path';

const { Provider } = createRequire(join(process.env.MCP_TEST_DEPS, 'oidc', 'package.json'))('oidc-provider');
const [port, redirect] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const provider = new Provider(issuer, {
  clients: [{ client_id: 'box', client_secret: 'made-up-openid-secret', redirect_uris: [redirect] }],
  claims: { openid: ['sub', 'groups'] },
  conformIdTokenClaims: false,
  cookies: { keys: ['made-up-cookie-key'] },
  features: { devInteractions: { enabled: true } },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, groups: ['ops'] }) }),
  pkce: { required: () => true },
});
provider.listen(Number(port), '127.0.0.1', () => console.log(`listening ${issuer}`));
