//! The configuration keys of credentials toward backends.

use crate::key_parts::{key, one_of};
use crate::keys::{ConfigKey, KeyKind};

/// Words that `backends.NAME.auth.type` accepts.
pub(crate) const AUTH_TYPES: &[&str] =
    &["static", "oauth", "client_credentials", "token_exchange", "jwt_bearer", "enterprise"];
/// Words that `backends.NAME.auth.provider` accepts.
const PROVIDERS: &[&str] = &["standard", "entra"];
/// Words that `backends.NAME.auth.exchange_subject` accepts.
const SUBJECTS: &[&str] = &["secret", "caller"];

/// Every key of `backends.NAME.auth`, in the order of the reference.
pub(crate) const BACKEND_AUTH_KEYS: &[ConfigKey] = &[
    key(
        "backends.NAME.auth.type",
        one_of(AUTH_TYPES, "static"),
        "Credential that the gateway presents to the server: a secret of the configuration, a person's sign-in (`oauth`), the client's own credentials, RFC 8693 token exchange, a JWT that is given (`jwt_bearer`), or an identity provider's assertion (`enterprise`); see docs/backend-auth.md.",
    ),
    key(
        "backends.NAME.auth.header",
        KeyKind::Text("Authorization"),
        "The header that holds the secret, with `static`.",
    ),
    key(
        "backends.NAME.auth.scheme",
        KeyKind::Text(""),
        "Word before the secret in the header; by default `Bearer` in `Authorization` and nothing in other headers.",
    ),
    key(
        "backends.NAME.auth.secret_env",
        KeyKind::Text(""),
        "The environment variable that holds the secret, or the token that is exchanged or given.",
    ),
    key("backends.NAME.auth.secret_file", KeyKind::Text(""), "The file that holds it, instead."),
    key(
        "backends.NAME.auth.secret_command",
        KeyKind::Texts,
        "Program that prints the secret, with its arguments; no shell is involved.",
    ),
    key(
        "backends.NAME.auth.refresh",
        KeyKind::Seconds { default: None, max: 30.0 * 24.0 * 3600.0 },
        "Interval at which the secret is read again. It is also read again when the server answers 401.",
    ),
    key(
        "backends.NAME.auth.users.NAME.secret_env",
        KeyKind::Text(""),
        "The same for one principal, such as `local:ada`.",
    ),
    key("backends.NAME.auth.users.NAME.secret_file", KeyKind::Text(""), "The same for one principal."),
    key("backends.NAME.auth.users.NAME.secret_command", KeyKind::Texts, "The same for one principal."),
    key(
        "backends.NAME.auth.per_user",
        KeyKind::Flag(false),
        "Each principal signs in by itself and has tokens of its own; otherwise all callers of the backend share one.",
    ),
    key(
        "backends.NAME.auth.client_id",
        KeyKind::Text(""),
        "The id of the client that was registered at the authorization server by hand; without it the gateway uses its metadata document or registers itself.",
    ),
    key(
        "backends.NAME.auth.client_secret_env",
        KeyKind::Text(""),
        "The environment variable with that client's secret.",
    ),
    key("backends.NAME.auth.client_secret_file", KeyKind::Text(""), "The file with it, instead."),
    key(
        "backends.NAME.auth.client_key_file",
        KeyKind::Text(""),
        "The client's private key, PKCS#8 in PEM, instead of a secret (`private_key_jwt`).",
    ),
    key("backends.NAME.auth.scopes", KeyKind::Texts, "Scopes to ask for besides those that the server names."),
    key(
        "backends.NAME.auth.issuer",
        KeyKind::Text(""),
        "The only authorization server that is accepted, by its issuer; by default the first that the server names.",
    ),
    key(
        "backends.NAME.auth.resource",
        KeyKind::Text(""),
        "The identifier of the server in token requests; by default the one of its metadata, or its address.",
    ),
    key(
        "backends.NAME.auth.provider",
        one_of(PROVIDERS, "standard"),
        "A provider that needs an exception: `entra` refuses the parameter `resource`, which is left out there.",
    ),
    key(
        "backends.NAME.auth.exchange_url",
        KeyKind::Text(""),
        "With `token_exchange` and `enterprise`: the token endpoint that takes the token.",
    ),
    key(
        "backends.NAME.auth.exchange_subject",
        one_of(SUBJECTS, "secret"),
        "Token to exchange: the one that `secret_env` and the like give, or that of the `caller`, which must have presented one.",
    ),
    key(
        "backends.NAME.auth.exchange_client_id",
        KeyKind::Text(""),
        "Client id at the token endpoint, if it differs from `client_id`.",
    ),
    key(
        "backends.NAME.auth.exchange_client_secret_env",
        KeyKind::Text(""),
        "Environment variable with the secret of that client.",
    ),
    key(
        "backends.NAME.auth.exchange_token_type",
        KeyKind::Text(""),
        "Type of the exchanged token, as a URN; by default an access token, and with `enterprise` an ID token.",
    ),
    key(
        "backends.NAME.auth.audience",
        KeyKind::Text(""),
        "The audience to ask for in the exchange; with `enterprise` by default the issuer of the server's authorization server.",
    ),
];

/// Every key of `auth.outbound`, in the order of the reference.
pub(crate) const OUTBOUND_KEYS: &[ConfigKey] = &[
    key(
        "auth.outbound.allow",
        KeyKind::Texts,
        "Hosts and networks that OAuth requests may go to although they are not public or have no TLS, such as `localhost` or `10.0.0.0/8`.",
    ),
    key(
        "auth.outbound.ca_file",
        KeyKind::Text(""),
        "The authorities that sign the certificates of authorization servers, PEM, instead of the system's.",
    ),
    key(
        "auth.outbound.client_metadata_url",
        KeyKind::Text(""),
        "The https address of a client metadata document that describes this gateway, for authorization servers that read such documents.",
    ),
    key(
        "auth.outbound.public_url",
        KeyKind::Text(""),
        "The address under which browsers reach this gateway's listener, for sign-ins; without it a port of loopback is opened for them.",
    ),
    key(
        "auth.outbound.key_command",
        KeyKind::Texts,
        "A program that prints the key of the token store, 32 bytes in base64; by default the key is in the data folder.",
    ),
];
