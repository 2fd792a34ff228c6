#!/usr/bin/env node
// npm oidc-provider as the issuer of callers' tokens: JWT access tokens for the resource that is asked for (RFC 8707), by client
// credentials or by a person's sign-in in its development pages, and RFC 8693 token exchange as a grant of its own.
//
//   oidc-issuer.mjs PORT GATEWAY_RESOURCE REDIRECT_URI
//
// Clients: `agent` and `other-agent` (secret `made-up-agent-secret`) get tokens as themselves, `editor` (no secret, PKCE) for people,
// and `gate` (secret `made-up-gate-secret`) exchanges tokens for GATEWAY_RESOURCE for tokens of other resources. Every start has a
// signing key of its own. Prints `listening ISSUER`, and `exchange JSON` for each exchange: the form as it came, and what the gateway
// proved itself with.
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const require = createRequire(join(process.env.MCP_TEST_DEPS, 'oidc', 'package.json'));
const { Provider, errors } = require('oidc-provider');
const { createLocalJWKSet, jwtVerify } = require('jose');

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';
const [port, gatewayResource, redirect] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;

const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const kid = randomUUID();
const key = { ...pair.privateKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'ES256' };
const ownKeys = createLocalJWKSet({ keys: [{ ...pair.publicKey.export({ format: 'jwk' }), kid, alg: 'ES256' }] });

const asItself = (id, secret, ...grants) => ({
  client_id: id, client_secret: secret, grant_types: grants, redirect_uris: [], response_types: [],
  id_token_signed_response_alg: 'ES256',
});
const resourceServer = (resource) => ({
  scope: 'greet:use use', audience: resource, accessTokenFormat: 'jwt', accessTokenTTL: 600, jwt: { sign: { alg: 'ES256' } },
});

const provider = new Provider(issuer, {
  clients: [
    asItself('agent', 'made-up-agent-secret', 'client_credentials'),
    asItself('other-agent', 'made-up-agent-secret', 'client_credentials'),
    asItself('gate', 'made-up-gate-secret', EXCHANGE),
    {
      client_id: 'editor', token_endpoint_auth_method: 'none', redirect_uris: [redirect],
      id_token_signed_response_alg: 'ES256',
    },
  ],
  clientDefaults: { id_token_signed_response_alg: 'ES256' },
  cookies: { keys: ['made-up-cookie-key'] },
  enabledJWA: { idTokenSigningAlgValues: ['ES256'] },
  extraTokenClaims: (_, token) => token.gty === 'token_exchange' ? { act: { sub: token.clientId } } : undefined,
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => resourceServer(resource),
    },
  },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  jwks: { keys: [key] },
  pkce: { required: () => true },
});

const members = ['subject_token', 'subject_token_type', 'actor_token', 'actor_token_type', 'requested_token_type', 'audience', 'resource',
  'scope'];
provider.registerGrantType(EXCHANGE, async (ctx) => {
  const { client, params } = ctx.oidc;
  console.log(`exchange ${JSON.stringify({ form: ctx.oidc.body, authorization: ctx.get('authorization'), client: client.clientId })}`);
  if (params.subject_token_type !== ACCESS_TOKEN || !params.subject_token || params.actor_token) {
    throw new errors.InvalidRequest('an access token has to be exchanged, without an actor');
  }
  if (params.requested_token_type !== undefined && params.requested_token_type !== ACCESS_TOKEN) {
    throw new errors.InvalidRequest('only access tokens are issued');
  }
  // The gateway may exchange what was made for it, and nothing else.
  const { payload } = await jwtVerify(params.subject_token, ownKeys, { issuer, audience: gatewayResource })
    .catch(() => { throw new errors.InvalidGrant('the subject token is not good'); });
  const resource = params.resource;
  if (typeof resource !== 'string' || !URL.canParse(resource)) throw new errors.InvalidTarget('one resource has to be named');
  const token = new provider.AccessToken({ accountId: payload.sub, client, gty: 'token_exchange', scope: params.scope });
  token.resourceServer = new provider.ResourceServer(resource, resourceServer(resource));
  ctx.body = {
    access_token: await token.save(), issued_token_type: ACCESS_TOKEN, token_type: 'Bearer', expires_in: token.expiration,
    scope: params.scope,
  };
}, members, ['audience', 'resource']);

provider.listen(Number(port), '127.0.0.1', () => console.log(`listening ${issuer}`));
