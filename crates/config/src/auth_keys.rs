//! Configuration keys of authentication.

use crate::key_parts::{TRUST_LEVELS, count, key, one_of, seconds};
use crate::keys::{ConfigKey, KeyKind};

const DAY: f64 = 24.0 * 3600.0;

/// Ways of authentication, in the order in which they are tried by default.
pub const WAYS: [&str; 5] = ["key", "token", "certificate", "signature", "local"];

/// Every key of `auth`, in the order of the reference.
pub(crate) const AUTH_KEYS: &[ConfigKey] = &[
    key(
        "auth.order",
        KeyKind::Texts,
        "Ways in which callers may authenticate, in the order in which they are tried: `key`, `token`, `certificate`, `signature`, `local`. Others are not accepted. By default all that are configured.",
    ),
    key(
        "auth.resource",
        KeyKind::Text(""),
        "Address by which clients know the MCP endpoint, such as `https://box.example/mcp`: the audience of tokens. By default the address of the listener.",
    ),
    key(
        "auth.authorization_servers",
        KeyKind::Texts,
        "The issuers that clients get tokens from, for the metadata of the resource. By default the issuers under `auth.jwt`.",
    ),
    key("auth.required_scopes", KeyKind::Texts, "Scopes that every token must have."),
    key(
        "auth.scopes.NAME",
        KeyKind::Texts,
        "The scope NAME is needed for these tools, prompts and resources, as patterns `BACKEND` or `BACKEND/NAME`. `*` and `?` are wildcards.",
    ),
    key(
        "auth.scope_hierarchy.NAME",
        KeyKind::Texts,
        "The scope NAME includes these scopes, and those that they include.",
    ),
    key(
        "auth.max_sessions",
        count(100, 1, 1_000_000),
        "Maximum number of open sessions per caller, if callers authenticate. Beyond that, the caller's longest idle session ends if it was idle for a minute; otherwise the new one is refused.",
    ),
    key(
        "auth.metrics_secret_env",
        KeyKind::Text(""),
        "Environment variable with the secret that `/metrics` demands as a bearer token, such as `HEALTH_TOKEN`. It is valid for `/metrics` only, and no other credential is.",
    ),
    key(
        "auth.default_trust",
        one_of(TRUST_LEVELS, "verified"),
        "Trust level of an authenticated caller for which no other level is configured.",
    ),
    key(
        "auth.jwt.NAME.issuer",
        KeyKind::Text(""),
        "The exact `iss` of the tokens. NAME is the first part of principals: `NAME:SUBJECT`.",
    ),
    key("auth.jwt.NAME.audience", KeyKind::Texts, "Accepted values of `aud`. By default `auth.resource`."),
    key(
        "auth.jwt.NAME.jwks_file",
        KeyKind::Text(""),
        "The issuer's public keys, as a JSON Web Key Set. A changed file is read again.",
    ),
    key(
        "auth.jwt.NAME.jwks_url",
        KeyKind::Text(""),
        "Address at which the issuer publishes its keys. They are read again every `refresh`, and when a token names an unknown key.",
    ),
    key(
        "auth.jwt.NAME.secret_env",
        KeyKind::Text(""),
        "The variable that holds the secret of an issuer that signs with HS256.",
    ),
    key(
        "auth.jwt.NAME.algorithms",
        KeyKind::Texts,
        "Accepted signature algorithms: `RS256`, `RS384`, `RS512`, `PS256`, `PS384`, `PS512`, `ES256`, `ES384`, `EdDSA`; by default `RS256`, `ES256` and `EdDSA`.",
    ),
    key("auth.jwt.NAME.clock_skew", seconds(60.0, 600.0), "Tolerated difference between the issuer's clock and ours."),
    key("auth.jwt.NAME.refresh", seconds(3600.0, 7.0 * DAY), "Interval at which `jwks_url` is read again."),
    key("auth.jwt.NAME.subject_claim", KeyKind::Text("sub"), "The claim that names the caller."),
    key(
        "auth.jwt.NAME.role_claims",
        KeyKind::Texts,
        "The claims that hold roles; dots lead into objects. By default `roles` and `role`.",
    ),
    key("auth.jwt.NAME.group_claims", KeyKind::Texts, "The claims that hold groups. By default `groups`."),
    key("auth.jwt.NAME.require_id", KeyKind::Flag(false), "Refuse tokens without a `jti`."),
    key(
        "auth.certificates.NAME.fingerprint",
        KeyKind::Text(""),
        "The SHA-256 of a client certificate, in hexadecimal.",
    ),
    key(
        "auth.certificates.NAME.name",
        KeyKind::Text(""),
        "A pattern of an alternative name of the certificate: `dns:…`, `email:…`, `uri:…` or `ip:…`.",
    ),
    key(
        "auth.certificates.NAME.subject",
        KeyKind::Text(""),
        "A pattern of its whole subject, name by name in the order of the certificate: `CN=ada, O=Example`; `*` by itself stands for one or more names. Prefer `name`.",
    ),
    key("auth.certificates.NAME.principal", KeyKind::Text(""), "The principal of its holder. By default NAME."),
    key("auth.certificates.NAME.roles", KeyKind::Texts, "Roles of its holder."),
    key(
        "auth.users.NAME.roles",
        KeyKind::Texts,
        "Roles of the principal NAME. `admin` may use the API; see docs/authentication.md.",
    ),
    key("auth.users.NAME.groups", KeyKind::Texts, "Groups of the principal NAME."),
    key("auth.users.NAME.trust", KeyKind::Text(""), "Trust level: `system`, `verified`, `community` or `untrusted`."),
    key("auth.users.NAME.resources", KeyKind::Texts, "Patterns of the resources that it may use; by default all."),
    key("auth.groups.NAME.roles", KeyKind::Texts, "Roles of every member of the group NAME."),
    key("auth.groups.NAME.trust", KeyKind::Text(""), "Trust level of its members, as for users."),
    key("auth.groups.NAME.resources", KeyKind::Texts, "Patterns of the resources that they may use."),
    key(
        "auth.server.enabled",
        KeyKind::Flag(false),
        "Act as an authorization server for MCP clients that support only OAuth. `signalbox users add NAME` adds people who can sign in; see docs/authorization-server.md.",
    ),
    key(
        "auth.server.issuer",
        KeyKind::Text(""),
        "The address under which clients and browsers reach the gateway, such as `https://box.example`. By default that of `auth.resource`.",
    ),
    key("auth.server.registration", KeyKind::Flag(true), "Let clients register themselves (RFC 7591)."),
    key(
        "auth.server.client_documents",
        KeyKind::Flag(true),
        "Let a client be known by the https address of a metadata document that it publishes. A gateway without access to the internet cannot fetch one: `false` lets such clients register themselves.",
    ),
    key("auth.server.access_lifetime", seconds(600.0, DAY), "Lifetime of an access token."),
    key(
        "auth.server.key_lifetime",
        KeyKind::Seconds { default: None, max: 3650.0 * DAY },
        "Time after which a new key signs tokens; at least `access_lifetime`. By default the key is never replaced.",
    ),
    key(
        "auth.server.openid.issuer",
        KeyKind::Text(""),
        "The exact issuer of an OpenID provider at which people may sign in. They call as `user:openid:SUBJECT`.",
    ),
    key("auth.server.openid.client_id", KeyKind::Text(""), "The `client_id` of the gateway there."),
    key(
        "auth.server.openid.client_secret_env",
        KeyKind::Text(""),
        "The variable that holds the secret of the gateway there, if it has one.",
    ),
    key("auth.server.openid.name", KeyKind::Text(""), "Name of the provider on the sign-in page. By default its host."),
    key("auth.server.openid.scopes", KeyKind::Texts, "Scopes to request there besides `openid`."),
    key("auth.server.openid.subject_claim", KeyKind::Text("sub"), "The claim that names the person."),
    key(
        "auth.server.openid.group_claims",
        KeyKind::Texts,
        "The claims that hold groups of the person. By default `groups`.",
    ),
    key(
        "auth.server.refresh_lifetime",
        seconds(30.0 * DAY, 365.0 * DAY),
        "Time after which an unused refresh token expires.",
    ),
];
