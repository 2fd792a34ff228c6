//! Requests to token endpoints.

use crate::client_identity::{ClientAuth, ClientIdentity};
use crate::error::{OauthError, code};
use crate::form;
use crate::outbound::Outbound;
use crate::private_key::{self, now};
use crate::secret_text::SecretText;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::HeaderValue;
use serde::{Deserialize, Serialize};
use signalbox_transport::web_client::WebAnswer;

/// How an assertion is called in a form.
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// A token is renewed this many seconds before it expires, or at nine tenths of its time if that is later.
const AHEAD: u64 = 60;

/// A token, where it comes from and what it is good for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TokenSet {
    /// The issuer. The token is used for nothing else, and refreshed nowhere else.
    pub issuer: String,
    /// The client that it was given to.
    pub client_id: String,
    /// How that client proves itself.
    pub client_auth: ClientAuth,
    /// Where it is refreshed.
    pub token_endpoint: String,
    /// The server that it is for.
    pub resource: String,
    /// The token.
    pub access: SecretText,
    /// What it is refreshed with, if anything.
    pub refresh: Option<SecretText>,
    /// When it was given, in seconds since 1970.
    pub given: u64,
    /// When it expires, if that is known.
    pub expires: Option<u64>,
    /// The scopes that were asked for or given. What was asked for once is not asked for again.
    pub scopes: Vec<String>,
}

impl TokenSet {
    /// True while the token can be used, with some time left.
    #[must_use]
    pub fn is_fresh(&self, now: u64) -> bool {
        self.expires.is_none_or(|expires| {
            let ahead = AHEAD.min(expires.saturating_sub(self.given) / 10);
            now + ahead < expires
        })
    }

    /// True once the token has expired.
    #[must_use]
    pub fn is_over(&self, now: u64) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

/// What is asked for, besides the grant itself.
#[derive(Clone, Debug)]
pub struct TokenContext<'a> {
    /// Who asks.
    pub client: &'a ClientIdentity,
    /// Where.
    pub token_endpoint: &'a str,
    /// The server that the token is for.
    pub resource: &'a str,
    /// Whether the provider takes the parameter `resource`.
    pub takes_resource: bool,
    /// The scopes that are asked for.
    pub scopes: &'a [String],
}

impl TokenContext<'_> {
    /// Asks for a token by this grant.
    ///
    /// # Errors
    /// If the endpoint cannot be asked, or refuses.
    pub async fn ask(&self, outbound: &Outbound, grant: &[(&str, &str)]) -> Result<TokenSet, OauthError> {
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

/// Posts a form to a token endpoint, as this client. The answer is one that grants.
pub(crate) async fn send(
    outbound: &Outbound,
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
