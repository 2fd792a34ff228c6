//! What the configuration says of the server.

use signalbox_engine::resource_address::ResourceAddress;
use std::time::Duration;

/// The settings of one server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Its address: the origin under which clients and browsers reach it.
    pub issuer: String,
    /// The one resource that it gives tokens for.
    pub resource: ResourceAddress,
    /// The scopes that there are.
    pub scopes: Vec<String>,
    /// The scopes of a client that asks for none.
    pub default_scopes: Vec<String>,
    /// Whether clients may register themselves.
    pub registration: bool,
    /// True if a client may be known by the address of a metadata document.
    pub client_documents: bool,
    /// How long an access token is good.
    pub access_lifetime: Duration,
    /// How long a refresh token is good that nobody uses.
    pub refresh_lifetime: Duration,
    /// The provider at which people may sign in, if there is one.
    pub provider: Option<Provider>,
}

/// An OpenID provider of people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Provider {
    /// Its name on sign-in pages.
    pub name: String,
    /// Its issuer, which tells its people from those of another one.
    pub issuer: String,
}

impl Settings {
    /// Whether browsers come by TLS.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.issuer.starts_with("https://")
    }

    /// Those of the scopes asked for that there are; the default where none is asked for.
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
