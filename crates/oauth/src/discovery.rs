//! Finds the authorization server of a protected server: RFC 9728, then RFC 8414 and OpenID Connect discovery.

use crate::error::OauthError;
use crate::outbound::Outbound;
use crate::web_address::{WebAddress, canonical};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Most entries of a list in metadata that are looked at.
const MAX_ENTRIES: usize = 64;

/// What a protected server says about itself (RFC 9728).
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResourceMetadata {
    /// Its identifier.
    pub resource: Option<String>,
    /// The issuers that it takes tokens of.
    pub authorization_servers: Vec<String>,
    /// The scopes that it knows.
    pub scopes_supported: Vec<String>,
}

/// What an authorization server says about itself (RFC 8414, OpenID Connect discovery).
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ServerMetadata {
    /// Its identifier.
    pub issuer: String,
    /// Where people sign in.
    pub authorization_endpoint: Option<String>,
    /// Where tokens are given.
    pub token_endpoint: Option<String>,
    /// Where its public keys are.
    pub jwks_uri: Option<String>,
    /// Where clients register.
    pub registration_endpoint: Option<String>,
    /// The scopes that it knows.
    pub scopes_supported: Vec<String>,
    /// The ways of PKCE that it knows.
    pub code_challenge_methods_supported: Option<Vec<String>>,
    /// How clients prove themselves at the token endpoint.
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// Whether a `client_id` may be the address of a document.
    pub client_id_metadata_document_supported: bool,
    /// Whether it says in its answers who it is (RFC 9207).
    pub authorization_response_iss_parameter_supported: bool,
}

/// A protected server and the authorization server to use for it.
#[derive(Clone, PartialEq, Debug)]
pub struct Discovered {
    /// The identifier of the protected server.
    pub resource: String,
    /// The scopes that it knows.
    pub scopes: Vec<String>,
    /// Its authorization server.
    pub server: ServerMetadata,
}

/// Finds out about the server at this address. `hint` is what its challenge names, `wanted` the only issuer that is accepted.
///
/// # Errors
/// If there is no authorization server that can be used.
pub async fn discover(
    outbound: &Outbound,
    url: &str,
    hint: Option<&str>,
    wanted: Option<&str>,
) -> Result<Discovered, OauthError> {
    let own = canonical(url).ok_or(OauthError::NoServer)?;
    let address = WebAddress::read(url).ok_or(OauthError::NoServer)?;
    let Some(metadata) = resource_metadata(outbound, &address, hint).await? else {
        // Servers of 2025-03-26 are their own authorization server, or name it at their root.
        let issuer = wanted.unwrap_or(&address.origin);
        let server = server_metadata(outbound, issuer).await?;
        return Ok(Discovered { resource: own, scopes: Vec::new(), server });
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
    Ok(Discovered { resource, scopes: metadata.scopes_supported.into_iter().take(MAX_ENTRIES).collect(), server })
}

/// The first metadata document of a protected server: where its challenge says, by its path, at its root.
async fn resource_metadata(
    outbound: &Outbound,
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

/// The metadata of an authorization server. Documents that name another issuer are not used.
pub(crate) async fn server_metadata(outbound: &Outbound, issuer: &str) -> Result<ServerMetadata, OauthError> {
    let address = WebAddress::read(issuer).ok_or(OauthError::NoServer)?;
    for place in server_places(&address) {
        let Some(metadata) = document::<ServerMetadata>(outbound, &place).await? else { continue };
        // Identical, byte for byte: nothing is normalised.
        if metadata.issuer != issuer {
            return Err(OauthError::BadMetadata("they are of another issuer"));
        }
        return Ok(metadata);
    }
    Err(OauthError::BadMetadata("there are none"))
}

/// Where the metadata of an authorization server may be, in the order of the MCP specification.
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

/// A JSON document, if there is one.
async fn document<T: DeserializeOwned>(outbound: &Outbound, url: &str) -> Result<Option<T>, OauthError> {
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
    fn a_c1_the_well_known_address_by_path_comes_before_the_root() {
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
    fn a_c2_the_metadata_of_an_issuer_are_looked_for_in_the_given_order() {
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
