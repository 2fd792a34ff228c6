//! Token exchange: RFC 8693, and assertions of identity providers (ID-JAG) that an authorization server accepts.

use crate::client_identity::ClientIdentity;
use crate::discovery::{DiscoveredServer, ServerMetadata};
use crate::error::OauthError;
use crate::outbound::OutboundSettings;
use crate::secret_text::SecretText;
use crate::spec::ExchangeSpec;
use crate::token_request::{TokenContext, TokenSet, send};
use crate::web_address::WebAddress;
use serde::Deserialize;

/// Grant type of RFC 8693.
const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
/// Grant type of RFC 7523.
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// Token type of an access token.
pub const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
/// Token type of an ID token.
pub const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
/// Token type of an identity assertion.
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// Exchanges a token for one of the backend, at the configured token endpoint.
///
/// # Errors
/// If the endpoint refuses.
pub async fn exchange(
    outbound: &OutboundSettings,
    spec: &ExchangeSpec,
    subject: &SecretText,
    context: &TokenContext<'_>,
) -> Result<TokenSet, OauthError> {
    let scope = context.scopes.join(" ");
    let mut grant = vec![
        ("grant_type", EXCHANGE),
        ("subject_token", subject.expose()),
        ("subject_token_type", spec.token_type.as_str()),
        ("requested_token_type", ACCESS_TOKEN),
    ];
    grant.extend(spec.audience.as_deref().map(|audience| ("audience", audience)));
    if !scope.is_empty() {
        grant.push(("scope", &scope));
    }
    context.ask(outbound, &grant).await
}

#[derive(Deserialize)]
struct Assertion {
    access_token: SecretText,
    issued_token_type: String,
    scope: Option<String>,
}

/// Gets an assertion from the identity provider, and exchanges it for a token at the backend's authorization server.
///
/// # Errors
/// If either refuses.
pub async fn enterprise(
    outbound: &OutboundSettings,
    spec: &ExchangeSpec,
    at_provider: &ClientIdentity,
    at_server: &ClientIdentity,
    subject: &SecretText,
    found: &DiscoveredServer,
    scopes: &[String],
) -> Result<TokenSet, OauthError> {
    let scope = scopes.join(" ");
    let mut asked = vec![
        ("grant_type", EXCHANGE),
        ("requested_token_type", ID_JAG),
        ("subject_token", subject.expose()),
        ("subject_token_type", spec.token_type.as_str()),
        // The assertion is addressed to the authorization server, and names the server that the token will be for.
        ("audience", spec.audience.as_deref().unwrap_or(&found.server.issuer)),
        ("resource", &found.resource),
    ];
    if !scope.is_empty() {
        asked.push(("scope", &scope));
    }
    let answer = send(outbound, at_provider, &spec.url, &asked).await?;
    let assertion: Assertion =
        serde_json::from_slice(&answer.body).map_err(|_| OauthError::Garbage("the token exchange"))?;
    if assertion.issued_token_type != ID_JAG {
        return Err(OauthError::Garbage("the token exchange"));
    }
    // Requesting more than the assertion grants would be refused, or exceed what the provider allows.
    let granted = assertion.scope.as_deref().map(|scope| scope.split_ascii_whitespace().collect::<Vec<_>>());
    let is_granted = |scope: &&String| granted.as_ref().is_none_or(|granted| granted.contains(&scope.as_str()));
    let within: Vec<String> = scopes.iter().filter(is_granted).cloned().collect();
    let mut token = jwt_bearer(outbound, at_server, &assertion.access_token, found, &within).await?;
    // Record the scopes that were not granted, so that they are not requested again.
    token.scopes.extend(scopes.iter().filter(|scope| !within.contains(scope)).cloned());
    Ok(token)
}

/// Exchanges an assertion for a token at the backend's authorization server (RFC 7523).
///
/// # Errors
/// If the server refuses.
pub async fn jwt_bearer(
    outbound: &OutboundSettings,
    client: &ClientIdentity,
    assertion: &SecretText,
    found: &DiscoveredServer,
    scopes: &[String],
) -> Result<TokenSet, OauthError> {
    let context = TokenContext {
        client,
        token_endpoint: token_endpoint(&found.server)?,
        resource: &found.resource,
        takes_resource: true,
        scopes,
    };
    let scope = scopes.join(" ");
    let mut grant = vec![("grant_type", JWT_BEARER), ("assertion", assertion.expose())];
    if !scope.is_empty() {
        grant.push(("scope", &scope));
    }
    context.ask(outbound, &grant).await
}

/// Returns the token endpoint of a server.
pub(crate) fn token_endpoint(server: &ServerMetadata) -> Result<&str, OauthError> {
    let endpoint = server.token_endpoint.as_deref().filter(|url| WebAddress::read(url).is_some());
    endpoint.ok_or(OauthError::BadMetadata("they name no token endpoint"))
}
