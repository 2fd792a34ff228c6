//! Requests to token endpoints.

use crate::client_identity::{ClientAuth, ClientIdentity};
use crate::error::{OauthError, code};
use crate::form;
use crate::outbound::OutboundSettings;
use crate::private_key::{self, now};
use crate::secret_text::SecretText;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::HeaderValue;
use serde::{Deserialize, Serialize};
use signalbox_transport::web_client::WebAnswer;

/// Assertion type in the token request.
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// Number of seconds before expiry at which a token is renewed. For short-lived tokens it is a tenth of the lifetime.
const AHEAD: u64 = 60;

/// Token with its origin and validity.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TokenSet {
    /// Issuer of the token. It is refreshed nowhere else.
    pub issuer: String,
    /// Client that it was issued to.
    pub client_id: String,
    /// Authentication method of that client.
    pub client_auth: ClientAuth,
    /// Endpoint that refreshes it.
    pub token_endpoint: String,
    /// Server that it is for.
    pub resource: String,
    pub access: SecretText,
    /// Refresh token, if there is one.
    pub refresh: Option<SecretText>,
    /// Time of issue, in seconds since 1970.
    pub given: u64,
    /// Expiry, in seconds since 1970, if known.
    pub expires: Option<u64>,
    /// Scopes that were requested or granted. A requested scope is not requested again.
    pub scopes: Vec<String>,
}

impl TokenSet {
    /// Returns true if the token is valid with some time left.
    #[must_use]
    pub fn is_fresh(&self, now: u64) -> bool {
        self.expires.is_none_or(|expires| {
            let ahead = AHEAD.min(expires.saturating_sub(self.given) / 10);
            now + ahead < expires
        })
    }

    /// Returns true if the token has expired.
    #[must_use]
    pub fn is_over(&self, now: u64) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

/// Parameters of a token request besides the grant.
#[derive(Clone, Debug)]
pub struct TokenContext<'a> {
    /// Client that requests the token.
    pub client: &'a ClientIdentity,
    /// URL of the token endpoint.
    pub token_endpoint: &'a str,
    /// Server that the token is for.
    pub resource: &'a str,
    /// True if the provider accepts the parameter `resource`.
    pub takes_resource: bool,
    pub scopes: &'a [String],
}

impl TokenContext<'_> {
    /// Requests a token by this grant.
    ///
    /// # Errors
    /// If the request fails, or the endpoint refuses.
    pub async fn ask(&self, outbound: &OutboundSettings, grant: &[(&str, &str)]) -> Result<TokenSet, OauthError> {
        let mut pairs = grant.to_vec();
        if self.takes_resource {
            pairs.push(("resource", self.resource));
        }
        let answer = send(outbound, self.client, self.token_endpoint, &pairs).await?;
        let given: TokenAnswer =
            serde_json::from_slice(&answer.body).map_err(|_| OauthError::Garbage("the token request"))?;
        self.token(given)
    }

    fn token(&self, answer: TokenAnswer) -> Result<TokenSet, OauthError> {
        let bearer = answer.token_type.as_deref().is_none_or(|kind| kind.eq_ignore_ascii_case("bearer"));
        let good = !answer.access_token.expose().is_empty()
            && answer.access_token.expose().bytes().all(|b| b.is_ascii_graphic());
        if !bearer || !good {
            return Err(OauthError::Garbage("the token request"));
        }
        let now = now();
        let mut scopes = self.scopes.to_vec();
        for scope in answer.scope.as_deref().unwrap_or_default().split_ascii_whitespace() {
            if !scopes.iter().any(|known| known == scope) {
                scopes.push(scope.to_owned());
            }
        }
        Ok(TokenSet {
            issuer: self.client.issuer.clone(),
            client_id: self.client.id.clone(),
            client_auth: self.client.auth,
            token_endpoint: self.token_endpoint.to_owned(),
            resource: self.resource.to_owned(),
            access: answer.access_token,
            refresh: answer.refresh_token,
            given: now,
            expires: answer.expires_in.map(|seconds| now.saturating_add(seconds)),
            scopes,
        })
    }
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: SecretText,
    token_type: Option<String>,
    expires_in: Option<u64>,
    refresh_token: Option<SecretText>,
    scope: Option<String>,
}

/// Posts a form to a token endpoint as this client. Returns only successful responses.
pub(crate) async fn send(
    outbound: &OutboundSettings,
    client: &ClientIdentity,
    endpoint: &str,
    pairs: &[(&str, &str)],
) -> Result<WebAnswer, OauthError> {
    let mut pairs = pairs.to_vec();
    let mut authorization = None;
    let secret = client.secret.as_ref().map_or("", SecretText::expose);
    let assertion;
    match client.auth {
        ClientAuth::None => pairs.push(("client_id", &client.id)),
        ClientAuth::ClientSecretBasic => authorization = Some(basic(&client.id, secret)?),
        ClientAuth::ClientSecretPost => pairs.extend([("client_id", client.id.as_str()), ("client_secret", secret)]),
        ClientAuth::PrivateKeyJwt => {
            let file = client.key_file.as_deref().ok_or(OauthError::NoClient)?;
            assertion = private_key::assertion(file, &client.id, &client.issuer).await?;
            pairs.extend([
                ("client_id", client.id.as_str()),
                ("client_assertion_type", ASSERTION_TYPE),
                ("client_assertion", &assertion),
            ]);
        }
    }
    let answer = outbound.post_form(endpoint, form::write(&pairs), authorization).await?;
    match answer.status {
        200 | 201 => Ok(answer),
        _ => Err(OauthError::Refused { what: "the token request", code: code(&answer.body) }),
    }
}

fn basic(id: &str, secret: &str) -> Result<HeaderValue, OauthError> {
    let pair = STANDARD.encode(format!("{}:{}", form::encode(id), form::encode(secret)));
    let mut value = HeaderValue::from_str(&format!("Basic {pair}")).map_err(|_| OauthError::NoClient)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_renewed_before_it_expires() {
        let token = |given, expires| TokenSet {
            issuer: String::new(),
            client_id: String::new(),
            client_auth: ClientAuth::None,
            token_endpoint: String::new(),
            resource: String::new(),
            access: SecretText::new("x"),
            refresh: None,
            given,
            expires,
            scopes: Vec::new(),
        };
        assert!(token(0, None).is_fresh(u64::MAX));
        assert!(token(0, Some(3600)).is_fresh(3539) && !token(0, Some(3600)).is_fresh(3540));
        assert!(token(0, Some(10)).is_fresh(8) && !token(0, Some(10)).is_fresh(9));
        assert!(!token(0, Some(10)).is_over(9) && token(0, Some(10)).is_over(10));
        assert!(!format!("{:?}", token(0, None)).contains("\"x\""));
    }
}
