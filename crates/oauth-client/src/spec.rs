//! Configuration of credentials for a backend, `[backends.NAME.auth]`.

use crate::secret_source::SecretSource;
use http::header::HeaderName;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Kind of credential for a backend.
#[derive(Clone, PartialEq, Debug)]
pub enum AuthSpec {
    Static(StaticSpec),
    /// Tokens of an authorization server.
    Oauth(Box<OauthSpec>),
}

impl AuthSpec {
    /// Returns true if each caller has its own credential.
    #[must_use]
    pub fn is_per_user(&self) -> bool {
        match self {
            Self::Static(spec) => !spec.users.is_empty(),
            Self::Oauth(spec) => spec.per_user,
        }
    }
}

/// Configured secret in a header.
#[derive(Clone, PartialEq, Debug)]
pub struct StaticSpec {
    /// Name of the header.
    pub header: HeaderName,
    /// Prefix of the secret, separated by a blank; none if empty.
    pub scheme: String,
    /// Secret for callers without their own.
    pub shared: Option<SecretSource>,
    /// Secrets of individual principals.
    pub users: BTreeMap<String, SecretSource>,
    /// Interval at which it is read again; `None` reads it again only after a refusal.
    pub refresh: Option<Duration>,
}

impl StaticSpec {
    /// Returns true if each principal has a secret that no other principal uses.
    #[must_use]
    pub fn is_own(&self) -> bool {
        has_own_sources(self.shared.as_ref(), &self.users)
    }
}

/// Returns true if every principal with a secret has one of its own, and the others have none.
fn has_own_sources(shared: Option<&SecretSource>, users: &BTreeMap<String, SecretSource>) -> bool {
    let mut sources = users.values();
    let mut is_distinct = true;
    while let Some(source) = sources.next() {
        is_distinct &= sources.clone().all(|other| other != source);
    }
    shared.is_none() && !users.is_empty() && is_distinct
}

/// OAuth client for a backend.
#[derive(Clone, PartialEq, Debug)]
pub struct OauthSpec {
    /// Grant by which tokens are obtained.
    pub grant: GrantType,
    /// True if each principal has its own tokens.
    pub per_user: bool,
    /// Configured client, if any.
    pub client: Option<ClientSpec>,
    /// Scopes to request besides those that the server names.
    pub scopes: Vec<String>,
    /// The only acceptable issuer, if configured.
    pub issuer: Option<String>,
    /// Identifier of the server, if it differs from its metadata and its URL.
    pub resource: Option<String>,
    /// Known exceptions of the provider.
    pub provider: Provider,
}

/// Grant by which tokens are obtained.
#[derive(Clone, PartialEq, Debug)]
pub enum GrantType {
    /// A person signs in.
    SignIn,
    /// The client uses its own credentials.
    ClientCredentials,
    /// RFC 8693: exchanges another token for one of the backend.
    TokenExchange(ExchangeSpec),
    /// RFC 7523: the backend's authorization server accepts a configured JWT, such as that of a workload.
    JwtBearer(AssertionSpec),
    /// An identity provider issues an assertion (ID-JAG) that the backend's authorization server accepts.
    Enterprise(ExchangeSpec),
}

impl OauthSpec {
    /// Returns true if each principal has tokens that no other principal uses, and that say who it is.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.per_user
            && match &self.grant {
                GrantType::SignIn => true,
                GrantType::ClientCredentials => false,
                GrantType::TokenExchange(spec) | GrantType::Enterprise(spec) => {
                    spec.from_caller || has_own_sources(spec.shared.as_ref(), &spec.users)
                }
                GrantType::JwtBearer(spec) => has_own_sources(spec.shared.as_ref(), &spec.users),
            }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct AssertionSpec {
    /// Assertion for callers without their own.
    pub shared: Option<SecretSource>,
    /// Assertions of individual principals.
    pub users: BTreeMap<String, SecretSource>,
}

/// Parameters of a token exchange.
#[derive(Clone, PartialEq, Debug)]
pub struct ExchangeSpec {
    /// Token endpoint that performs the exchange.
    pub url: String,
    /// Client at that endpoint, if it differs from the one at the backend's authorization server.
    pub client: Option<ClientSpec>,
    /// True if the caller's own token is exchanged.
    pub from_caller: bool,
    /// Token for callers without their own.
    pub shared: Option<SecretSource>,
    /// Tokens of individual principals.
    pub users: BTreeMap<String, SecretSource>,
    /// Type of the exchanged token, as a URN.
    pub token_type: String,
    /// The `audience` to request, if configured.
    pub audience: Option<String>,
}

/// Client that was registered by hand.
#[derive(Clone, PartialEq, Debug)]
pub struct ClientSpec {
    pub id: String,
    pub secret: Option<SecretSource>,
    /// PEM file of the private key, for `private_key_jwt`.
    pub key_file: Option<PathBuf>,
}

/// Providers that need an exception.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Provider {
    /// The provider follows the specification.
    #[default]
    Standard,
    /// Microsoft Entra ID: rejects the parameter `resource`.
    Entra,
}

impl Provider {
    /// Returns true if it accepts the parameter `resource`.
    #[must_use]
    pub fn takes_resource(self) -> bool {
        self == Self::Standard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_own_if_no_two_principals_can_share_one() {
        let is_own = |shared: Option<&str>, users: &[(&str, &str)]| {
            let source = |name: &&str| SecretSource::Env((*name).to_owned());
            StaticSpec {
                header: http::header::AUTHORIZATION,
                scheme: "Bearer".to_owned(),
                shared: shared.as_ref().map(source),
                users: users.iter().map(|(user, name)| ((*user).to_owned(), source(name))).collect(),
                refresh: None,
            }
            .is_own()
        };
        assert!(is_own(None, &[("user:ada", "A"), ("user:eve", "E")]));
        assert!(!is_own(None, &[("user:ada", "A"), ("user:eve", "A")]), "one secret for two");
        assert!(!is_own(Some("S"), &[("user:ada", "A")]), "the others share one");
        assert!(!is_own(Some("S"), &[]));
    }
}
