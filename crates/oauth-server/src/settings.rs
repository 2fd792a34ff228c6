//! Settings of the authorization server.

use signalbox_engine::resource_address::ResourceAddress;
use std::time::Duration;

/// Settings of one server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerSettings {
    /// Issuer: the origin at which clients and browsers reach the server.
    pub issuer: String,
    /// The single resource that tokens are issued for.
    pub resource: ResourceAddress,
    /// Scopes that the server supports.
    pub scopes: Vec<String>,
    /// Scopes of a client that requests none.
    pub default_scopes: Vec<String>,
    /// True if clients may register themselves.
    pub registration: bool,
    /// True if a client id may be the URL of a metadata document.
    pub client_documents: bool,
    /// Lifetime of an access token.
    pub access_lifetime: Duration,
    /// Lifetime of an unused refresh token.
    pub refresh_lifetime: Duration,
    /// OpenID provider for people, if there is one.
    pub provider: Option<IdentityProvider>,
}

/// OpenID provider of people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdentityProvider {
    /// Name on sign-in pages.
    pub name: String,
    /// Issuer, which distinguishes its people from those of another provider.
    pub issuer: String,
}

impl ServerSettings {
    /// Returns true if browsers connect over TLS.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.issuer.starts_with("https://")
    }

    /// Returns the supported ones of the requested scopes, or the default if none is requested.
    pub(crate) fn granted(&self, asked: Option<&str>) -> Vec<String> {
        let Some(asked) = asked.filter(|asked| !asked.trim().is_empty()) else {
            return self.default_scopes.clone();
        };
        let mut granted: Vec<String> = Vec::new();
        for scope in asked.split_ascii_whitespace().filter(|scope| self.scopes.iter().any(|known| known == scope)) {
            if !granted.iter().any(|known| known == scope) {
                granted.push(scope.to_owned());
            }
        }
        granted
    }
}
