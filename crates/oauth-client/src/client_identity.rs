//! The gateway's identity at an authorization server: configured, by a metadata document, or by dynamic registration.

use crate::discovery::ServerMetadata;
use crate::error::{OauthError, code};
use crate::outbound::OutboundSettings;
use crate::secret_text::SecretText;
use crate::spec::ClientSpec;
use crate::web_address::WebAddress;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Client name of the gateway.
const CLIENT_NAME: &str = "Signalbox";

/// Authentication method of a client at the token endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    /// No authentication: a public client.
    None,
    /// Client secret in `Authorization`.
    ClientSecretBasic,
    /// Client secret in the form.
    ClientSecretPost,
    /// Assertion signed with a private key.
    PrivateKeyJwt,
}

impl ClientAuth {
    fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ClientSecretBasic => "client_secret_basic",
            Self::ClientSecretPost => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    fn read(word: &str) -> Option<Self> {
        let all = [Self::None, Self::ClientSecretBasic, Self::ClientSecretPost, Self::PrivateKeyJwt];
        all.into_iter().find(|one| one.as_str() == word)
    }
}

/// Client as registered at one authorization server. It is used at no other.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ClientIdentity {
    /// Issuer at which the client is registered.
    pub issuer: String,
    pub id: String,
    pub secret: Option<SecretText>,
    /// File of the private key.
    pub key_file: Option<PathBuf>,
    /// Authentication method at the token endpoint.
    pub auth: ClientAuth,
    /// Redirect URI as it was registered.
    pub redirect_uri: String,
    /// Expiry of the secret, in seconds since 1970; 0 for never.
    #[serde(default)]
    pub expires: u64,
}

impl ClientIdentity {
    /// Creates the identity of a configured client.
    ///
    /// # Errors
    /// If its secret cannot be read.
    pub async fn configured(
        spec: &ClientSpec,
        server: &ServerMetadata,
        redirect_uri: &str,
    ) -> Result<Self, OauthError> {
        let secret = match &spec.secret {
            Some(source) => Some(source.read().await?),
            None => None,
        };
        let auth = match (&spec.key_file, &secret) {
            (Some(_), _) => ClientAuth::PrivateKeyJwt,
            (None, Some(_)) => with_secret(server),
            (None, None) => ClientAuth::None,
        };
        Ok(Self {
            issuer: server.issuer.clone(),
            id: spec.id.clone(),
            secret,
            key_file: spec.key_file.clone(),
            auth,
            redirect_uri: redirect_uri.to_owned(),
            expires: 0,
        })
    }

    /// Creates the identity of a client whose id is the URL of its metadata document, if the server supports that.
    #[must_use]
    pub fn by_document(outbound: &OutboundSettings, server: &ServerMetadata, redirect_uri: &str) -> Option<Self> {
        let url = outbound.client_metadata_url.as_ref().filter(|_| server.client_id_metadata_document_supported)?;
        Some(Self {
            issuer: server.issuer.clone(),
            id: url.clone(),
            secret: None,
            key_file: None,
            auth: ClientAuth::None,
            redirect_uri: redirect_uri.to_owned(),
            expires: 0,
        })
    }

    /// Registers a client (RFC 7591).
    ///
    /// # Errors
    /// If the server does not support registration, or refuses.
    pub async fn registered(
        outbound: &OutboundSettings,
        server: &ServerMetadata,
        redirect_uri: &str,
        scopes: &[String],
    ) -> Result<Self, OauthError> {
        let endpoint = server.registration_endpoint.as_deref().ok_or(OauthError::NoClient)?;
        let auth = for_registration(server);
        let mut asked = serde_json::json!({
            "client_name": CLIENT_NAME,
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": auth.as_str(),
            "application_type": application_type(redirect_uri),
        });
        if let (Some(object), false) = (asked.as_object_mut(), scopes.is_empty()) {
            object.insert("scope".to_owned(), scopes.join(" ").into());
        }
        let answer = outbound.post_json(endpoint, Bytes::from(asked.to_string())).await?;
        if !matches!(answer.status, 200 | 201) {
            return Err(OauthError::Refused { what: "the registration", code: code(&answer.body) });
        }
        let given: Registration =
            serde_json::from_slice(&answer.body).map_err(|_| OauthError::Garbage("the registration"))?;
        let named = given.token_endpoint_auth_method.as_deref().and_then(ClientAuth::read);
        Ok(Self {
            issuer: server.issuer.clone(),
            id: given.client_id,
            auth: match (named, &given.client_secret) {
                (Some(named), _) => named,
                (None, Some(_)) => with_secret(server),
                (None, None) => ClientAuth::None,
            },
            secret: given.client_secret,
            key_file: None,
            redirect_uri: redirect_uri.to_owned(),
            expires: given.client_secret_expires_at,
        })
    }

    /// Returns true if a stored registration is still valid for this server.
    #[must_use]
    pub fn serves(&self, server: &ServerMetadata, redirect_uri: &str, now: u64) -> bool {
        self.issuer == server.issuer
            && self.redirect_uri == redirect_uri
            && (self.expires == 0 || self.expires > now + 60)
    }
}

#[derive(Deserialize)]
struct Registration {
    client_id: String,
    client_secret: Option<SecretText>,
    token_endpoint_auth_method: Option<String>,
    #[serde(default)]
    client_secret_expires_at: u64,
}

/// Returns true if a URL can be that of a client metadata document: https, with a path, and unambiguous.
#[must_use]
pub fn is_client_metadata_url(url: &str) -> bool {
    let plain = !url.contains(['#', '?']) && !url.contains("/../") && !url.contains("/./");
    plain
        && WebAddress::read(url)
            .is_some_and(|address| address.origin.starts_with("https://") && !address.path.is_empty())
}

/// Selects the method of a client with a secret. RFC 8414 defines `client_secret_basic` as the default.
pub(crate) fn with_secret(server: &ServerMetadata) -> ClientAuth {
    let methods = server.token_endpoint_auth_methods_supported.as_deref();
    let knows = |auth: ClientAuth| methods.is_none_or(|methods| methods.iter().any(|method| method == auth.as_str()));
    match knows(ClientAuth::ClientSecretBasic) || !knows(ClientAuth::ClientSecretPost) {
        true => ClientAuth::ClientSecretBasic,
        false => ClientAuth::ClientSecretPost,
    }
}

/// Selects the method to register with. A gateway on a user's machine protects a secret no better than its tokens, so a
/// public client is preferred.
fn for_registration(server: &ServerMetadata) -> ClientAuth {
    let methods = server.token_endpoint_auth_methods_supported.as_deref().unwrap_or_default();
    match methods.iter().any(|method| method == ClientAuth::None.as_str()) {
        true => ClientAuth::None,
        false => with_secret(server),
    }
}

/// Returns the application type for OpenID Connect registration: loopback redirects are native, https ones web.
fn application_type(redirect_uri: &str) -> &'static str {
    if redirect_uri.starts_with("http://") { "native" } else { "web" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(methods: Option<&[&str]>) -> ServerMetadata {
        let methods = methods.map(|methods| methods.iter().map(|method| (*method).to_owned()).collect());
        ServerMetadata {
            issuer: "https://as".to_owned(),
            token_endpoint_auth_methods_supported: methods,
            ..ServerMetadata::default()
        }
    }

    #[test]
    fn the_way_to_prove_itself_is_one_that_the_server_knows() {
        assert_eq!(with_secret(&server(None)), ClientAuth::ClientSecretBasic);
        assert_eq!(with_secret(&server(Some(&["client_secret_post"]))), ClientAuth::ClientSecretPost);
        assert_eq!(for_registration(&server(Some(&["client_secret_basic", "none"]))), ClientAuth::None);
        assert_eq!(for_registration(&server(Some(&["client_secret_post"]))), ClientAuth::ClientSecretPost);
        assert_eq!(for_registration(&server(None)), ClientAuth::ClientSecretBasic);
    }

    #[test]
    fn a_metadata_document_is_an_https_address_with_a_path() {
        assert!(is_client_metadata_url("https://a.example/client.json"));
        for bad in ["http://a.example/c", "https://a.example", "https://a.example/", "https://a.example/c#d", "client"]
        {
            assert!(!is_client_metadata_url(bad), "{bad}");
        }
        let url = Some("https://a.example/client.json".to_owned());
        let outbound = OutboundSettings { client_metadata_url: url, ..OutboundSettings::default() };
        let mut knows = server(None);
        assert!(ClientIdentity::by_document(&outbound, &knows, "r").is_none());
        knows.client_id_metadata_document_supported = true;
        let client = ClientIdentity::by_document(&outbound, &knows, "r").unwrap();
        assert_eq!((client.id.as_str(), client.auth), ("https://a.example/client.json", ClientAuth::None));
    }

    #[test]
    fn the_application_type_fits_the_redirect() {
        assert_eq!(application_type("http://127.0.0.1:7/auth/callback"), "native");
        assert_eq!(application_type("https://gate.example/auth/callback"), "web");
    }

    #[test]
    fn a_registration_serves_only_its_issuer() {
        let outbound =
            OutboundSettings { client_metadata_url: Some("https://a/c".to_owned()), ..OutboundSettings::default() };
        let one = ServerMetadata { client_id_metadata_document_supported: true, ..server(None) };
        let client = ClientIdentity::by_document(&outbound, &one, "r").unwrap();
        let other = ServerMetadata { issuer: "https://other".to_owned(), ..one.clone() };
        assert!(client.serves(&one, "r", 0) && !client.serves(&other, "r", 0) && !client.serves(&one, "s", 0));
    }
}
