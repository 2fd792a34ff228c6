//! What is configured about the credentials of a backend: `[backends.NAME.auth]`.

use crate::secret_source::SecretSource;
use http::header::HeaderName;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// How the gateway proves itself to a backend.
#[derive(Clone, PartialEq, Debug)]
pub enum AuthSpec {
    /// By a configured secret.
    Static(StaticSpec),
    /// By tokens of an authorization server.
    Oauth(Box<OauthSpec>),
}

impl AuthSpec {
    /// True if each caller has a credential of its own.
    #[must_use]
    pub fn is_per_user(&self) -> bool {
        match self {
            Self::Static(spec) => !spec.users.is_empty(),
            Self::Oauth(spec) => spec.per_user,
        }
    }
}

/// A configured secret in a header.
#[derive(Clone, PartialEq, Debug)]
pub struct StaticSpec {
    /// The header.
    pub header: HeaderName,
    /// What stands before the secret, with a blank between; nothing if empty.
    pub scheme: String,
    /// The secret for whoever has none of their own.
    pub shared: Option<SecretSource>,
    /// The secrets of single principals.
    pub users: BTreeMap<String, SecretSource>,
    /// How often it is read again; `None` for only after the backend refused it.
    pub refresh: Option<Duration>,
}

/// An OAuth client.
#[derive(Clone, PartialEq, Debug)]
pub struct OauthSpec {
    /// How tokens are got.
    pub grant: Grant,
    /// Whether each principal has tokens of its own.
    pub per_user: bool,
    /// The client that was registered by hand, if any.
    pub client: Option<ClientSpec>,
    /// Scopes to ask for besides those that the server names.
    pub scopes: Vec<String>,
    /// The only authorization server that is accepted, if one is named.
    pub issuer: Option<String>,
    /// The identifier of the server, where it is not the one in its metadata or its address.
    pub resource: Option<String>,
    /// What is known of the provider.
    pub provider: Provider,
}

/// How tokens are got.
#[derive(Clone, PartialEq, Debug)]
pub enum Grant {
    /// A person signs in.
    SignIn,
    /// The client's own credentials.
    ClientCredentials,
    /// RFC 8693: another token is exchanged for one of the backend.
    TokenExchange(ExchangeSpec),
    /// RFC 7523: a configured JWT, such as that of a workload, is taken for a token by the backend's authorization server.
    JwtBearer(AssertionSpec),
    /// An identity provider gives an assertion (ID-JAG), which the backend's authorization server takes for a token.
    Enterprise(ExchangeSpec),
}

/// Where assertions come from.
#[derive(Clone, PartialEq, Debug)]
pub struct AssertionSpec {
    /// The assertion of whoever has none of their own.
    pub shared: Option<SecretSource>,
    /// The assertions of single principals.
    pub users: BTreeMap<String, SecretSource>,
}

/// What is exchanged, and where.
#[derive(Clone, PartialEq, Debug)]
pub struct ExchangeSpec {
    /// The token endpoint that takes the token.
    pub url: String,
    /// The client that is known there, where it is another than at the backend's authorization server.
    pub client: Option<ClientSpec>,
    /// True if it is the token that the caller itself showed.
    pub from_caller: bool,
    /// The token of whoever has none of their own.
    pub shared: Option<SecretSource>,
    /// The tokens of single principals.
    pub users: BTreeMap<String, SecretSource>,
    /// What kind of token it is, as a URN.
    pub token_type: String,
    /// The `audience` to ask for, if one is configured.
    pub audience: Option<String>,
}

/// A client that was registered by hand.
#[derive(Clone, PartialEq, Debug)]
pub struct ClientSpec {
    /// Its `client_id`.
    pub id: String,
    /// Its secret.
    pub secret: Option<SecretSource>,
    /// Its private key, PEM, for `private_key_jwt`.
    pub key_file: Option<PathBuf>,
}

/// Providers that need an exception.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Provider {
    /// Does what the specification says.
    #[default]
    Standard,
    /// Microsoft Entra ID: refuses the parameter `resource`.
    Entra,
}

impl Provider {
    /// Whether it accepts the parameter `resource`.
    #[must_use]
    pub fn takes_resource(self) -> bool {
        self == Self::Standard
    }
}
