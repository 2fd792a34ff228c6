//! Discovery of a protected server's authorization server: RFC 9728, then RFC 8414 and OpenID Connect discovery.

use crate::error::OauthError;
use crate::outbound::OutboundSettings;
use crate::web_address::{WebAddress, canonical};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Maximum number of list entries in metadata that are considered.
const MAX_ENTRIES: usize = 64;

/// Metadata of a protected server (RFC 9728).
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResourceMetadata {
    /// Identifier of the server.
    pub resource: Option<String>,
    /// Issuers whose tokens it accepts.
    pub authorization_servers: Vec<String>,
    /// Scopes that it supports.
    pub scopes_supported: Vec<String>,
}

/// Metadata of an authorization server (RFC 8414, OpenID Connect discovery).
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ServerMetadata {
    /// Issuer identifier of the server.
    pub issuer: String,
    /// Endpoint for sign-ins by browser.
    pub authorization_endpoint: Option<String>,
    /// Endpoint that issues tokens.
    pub token_endpoint: Option<String>,
    /// URL of its public keys.
    pub jwks_uri: Option<String>,
    /// Endpoint for client registration.
    pub registration_endpoint: Option<String>,
    /// Scopes that it supports.
    pub scopes_supported: Vec<String>,
    /// PKCE methods that it supports.
    pub code_challenge_methods_supported: Option<Vec<String>>,
    /// Client authentication methods of the token endpoint.
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// True if a `client_id` may be the URL of a document.
    pub client_id_metadata_document_supported: bool,
    /// True if its responses name the issuer (RFC 9207).
    pub authorization_response_iss_parameter_supported: bool,
}

/// Protected server with its authorization server.
#[derive(Clone, PartialEq, Debug)]
pub struct DiscoveredServer {
    /// Identifier of the protected server.
    pub resource: String,
    /// Scopes that it supports.
    pub scopes: Vec<String>,
    /// Metadata of its authorization server.
    pub server: ServerMetadata,
}

/// Discovers the server at this URL. `hint` is the metadata URL of its challenge, `wanted` the only acceptable issuer.
///
/// # Errors
/// If there is no usable authorization server.
pub async fn discover(
    outbound: &OutboundSettings,
    url: &str,
    hint: Option<&str>,
    wanted: Option<&str>,
) -> Result<DiscoveredServer, OauthError> {
    let own = canonical(url).ok_or(OauthError::NoServer)?;
    let address = WebAddress::read(url).ok_or(OauthError::NoServer)?;
    let Some(metadata) = resource_metadata(outbound, &address, hint).await? else {
        // Servers of revision 2025-03-26 are their own authorization server, or name it at their root.
        let issuer = wanted.unwrap_or(&address.origin);
        let server = server_metadata(outbound, issuer).await?;
        return Ok(DiscoveredServer { resource: own, scopes: Vec::new(), server });
    };
    let resource = match &metadata.resource {
        Some(resource) => {
            let named = WebAddress::read(resource).ok_or(OauthError::WrongResource)?;
            if !named.holds(&address) {
                return Err(OauthError::WrongResource);
            }
            resource.clone()
        }
        None => own,
    };
    let servers = metadata.authorization_servers.iter().take(MAX_ENTRIES);
    let issuer = match wanted {
        Some(wanted) => servers.into_iter().find(|issuer| *issuer == wanted).ok_or(OauthError::IssuerChanged)?,
        None => servers.into_iter().next().ok_or(OauthError::NoServer)?,
    };
    let server = server_metadata(outbound, issuer).await?;
    Ok(DiscoveredServer { resource, scopes: metadata.scopes_supported.into_iter().take(MAX_ENTRIES).collect(), server })
}

/// Fetches the metadata of a protected server: from the URL in its challenge, by its path, or at its root.
async fn resource_metadata(
    outbound: &OutboundSettings,
    address: &WebAddress,
    hint: Option<&str>,
) -> Result<Option<ResourceMetadata>, OauthError> {
    if let Some(hint) = hint {
        return document(outbound, hint).await?.map(Some).ok_or(OauthError::NoServer);
    }
    for place in resource_places(address) {
        if let Some(metadata) = document(outbound, &place).await? {
            return Ok(Some(metadata));
        }
    }
    Ok(None)
}

fn resource_places(address: &WebAddress) -> Vec<String> {
    let root = format!("{}/.well-known/oauth-protected-resource", address.origin);
    match address.path.as_str() {
        "" => vec![root],
        path => vec![format!("{root}{path}"), root],
    }
}

/// Fetches the metadata of an authorization server. Rejects documents of another issuer.
pub(crate) async fn server_metadata(outbound: &OutboundSettings, issuer: &str) -> Result<ServerMetadata, OauthError> {
    let address = WebAddress::read(issuer).ok_or(OauthError::NoServer)?;
    for place in server_places(&address) {
        let Some(metadata) = document::<ServerMetadata>(outbound, &place).await? else { continue };
        // RFC 8414 requires a byte for byte comparison, without normalization.
        if metadata.issuer != issuer {
            return Err(OauthError::BadMetadata("they are of another issuer"));
        }
        return Ok(metadata);
    }
    Err(OauthError::BadMetadata("there are none"))
}

/// Returns the possible URLs of an authorization server's metadata, in the order of the MCP specification.
fn server_places(address: &WebAddress) -> Vec<String> {
    let WebAddress { origin, path } = address;
    match path.as_str() {
        "" => vec![
            format!("{origin}/.well-known/oauth-authorization-server"),
            format!("{origin}/.well-known/openid-configuration"),
        ],
        path => vec![
            format!("{origin}/.well-known/oauth-authorization-server{path}"),
            format!("{origin}/.well-known/openid-configuration{path}"),
            format!("{origin}{path}/.well-known/openid-configuration"),
        ],
    }
}

/// Fetches a JSON document. `None` if there is none.
async fn document<T: DeserializeOwned>(outbound: &OutboundSettings, url: &str) -> Result<Option<T>, OauthError> {
    let answer = outbound.get(url).await?;
    match answer.status {
        200 => Ok(serde_json::from_slice(&answer.body).ok()),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_well_known_address_by_path_comes_before_the_root() {
        let places = resource_places(&WebAddress::read("https://a.example/public/mcp").unwrap());
        assert_eq!(
            places,
            [
                "https://a.example/.well-known/oauth-protected-resource/public/mcp",
                "https://a.example/.well-known/oauth-protected-resource"
            ]
        );
    }

    #[test]
    fn the_metadata_of_an_issuer_are_looked_for_in_the_given_order() {
        let places = server_places(&WebAddress::read("https://a.example/tenant1").unwrap());
        assert_eq!(
            places,
            [
                "https://a.example/.well-known/oauth-authorization-server/tenant1",
                "https://a.example/.well-known/openid-configuration/tenant1",
                "https://a.example/tenant1/.well-known/openid-configuration"
            ]
        );
        assert_eq!(server_places(&WebAddress::read("https://a.example").unwrap()).len(), 2);
    }
}
