//! Sign-in of a person at an OpenID provider: the authorization URL, and the ID token for the returned code.

use crate::client_identity::{ClientAuth, ClientIdentity, with_secret};
use crate::discovery::{ServerMetadata, server_metadata};
use crate::error::OauthError;
use crate::outbound::OutboundSettings;
use crate::secret_text::SecretText;
use crate::token_request::send;
use crate::{form, pkce};
use serde::Deserialize;

/// The gateway as a client of an OpenID provider.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenIdClient {
    pub issuer: String,
    /// The `client_id` at the provider.
    pub client_id: String,
    /// Client secret, if there is one.
    pub secret: Option<SecretText>,
    pub redirect_uri: String,
    /// Scopes to request besides `openid`.
    pub scopes: Vec<String>,
}

/// Random values that bind a response to its request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenIdRequest {
    /// Returned with the browser.
    pub state: String,
    /// Returned in the ID token.
    pub nonce: String,
    pub verifier: SecretText,
}

/// Parameters that the browser brings back from the provider.
#[derive(Clone, Copy)]
pub struct OpenIdResponse<'a> {
    /// Authorization code. Absent if the provider declined.
    pub code: Option<&'a str>,
    /// Issuer that the response names in `iss`.
    pub issuer: Option<&'a str>,
}

#[derive(Deserialize)]
struct Answer {
    id_token: SecretText,
}

impl OpenIdClient {
    /// Fetches the metadata of the provider.
    ///
    /// # Errors
    /// If the request fails, or the metadata are unusable.
    pub async fn metadata(&self, outbound: &OutboundSettings) -> Result<ServerMetadata, OauthError> {
        server_metadata(outbound, &self.issuer).await
    }

    /// Returns the URL to send the browser to.
    ///
    /// # Errors
    /// If the provider names no authorization endpoint.
    pub fn authorization_url(&self, server: &ServerMetadata, request: &OpenIdRequest) -> Result<String, OauthError> {
        let endpoint = server.authorization_endpoint.as_deref();
        let endpoint = endpoint.ok_or(OauthError::BadMetadata("they name no address to sign in at"))?;
        let mut scopes = vec!["openid"];
        scopes.extend(self.scopes.iter().map(String::as_str).filter(|scope| *scope != "openid"));
        let pairs = [
            ("response_type", "code"),
            ("client_id", self.client_id.as_str()),
            ("redirect_uri", &self.redirect_uri),
            ("scope", &scopes.join(" ")),
            ("state", &request.state),
            ("nonce", &request.nonce),
            ("code_challenge", &pkce::challenge(request.verifier.expose())),
            ("code_challenge_method", "S256"),
        ];
        Ok(form::extend(endpoint, &pairs))
    }

    /// Exchanges the returned code for an ID token. The caller has to verify the token.
    ///
    /// # Errors
    /// If the response is from another provider or declines, or the provider rejects the code.
    pub async fn id_token(
        &self,
        outbound: &OutboundSettings,
        server: &ServerMetadata,
        request: &OpenIdRequest,
        response: OpenIdResponse<'_>,
    ) -> Result<SecretText, OauthError> {
        let expected = server.authorization_response_iss_parameter_supported;
        if response.issuer.map_or(expected, |issuer| issuer != self.issuer) {
            return Err(OauthError::NotOurs);
        }
        let code = response.code.ok_or_else(|| OauthError::NotGranted("no code".to_owned()))?;
        let endpoint =
            server.token_endpoint.as_deref().ok_or(OauthError::BadMetadata("they name no token endpoint"))?;
        let client = ClientIdentity {
            issuer: self.issuer.clone(),
            id: self.client_id.clone(),
            secret: self.secret.clone(),
            key_file: None,
            auth: if self.secret.is_some() { with_secret(server) } else { ClientAuth::None },
            redirect_uri: self.redirect_uri.clone(),
            expires: 0,
        };
        let pairs = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &self.redirect_uri),
            ("code_verifier", request.verifier.expose()),
        ];
        let answer = send(outbound, &client, endpoint, &pairs).await?;
        let answer: Answer =
            serde_json::from_slice(&answer.body).map_err(|_| OauthError::Garbage("the token request"))?;
        Ok(answer.id_token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_request_is_bound_to_its_answer_and_an_answer_of_another_provider_is_refused() {
        let client = OpenIdClient {
            issuer: "https://idp.example".to_owned(),
            client_id: "box".to_owned(),
            secret: None,
            redirect_uri: "https://box.example/auth/openid".to_owned(),
            scopes: vec!["email".to_owned()],
        };
        let request =
            OpenIdRequest { state: "s".to_owned(), nonce: "n".to_owned(), verifier: SecretText::new("v".repeat(43)) };
        let server = ServerMetadata {
            authorization_endpoint: Some("https://idp.example/auth".to_owned()),
            authorization_response_iss_parameter_supported: true,
            ..ServerMetadata::default()
        };
        let url = client.authorization_url(&server, &request).unwrap();
        for part in ["scope=openid%20email", "nonce=n", "state=s", "code_challenge_method=S256"] {
            assert!(url.contains(part), "{url}");
        }
        assert!(client.authorization_url(&ServerMetadata::default(), &request).is_err());
        let outbound = OutboundSettings::default();
        for issuer in [None, Some("https://evil.example"), Some("https://idp.example/")] {
            let response = OpenIdResponse { code: Some("c"), issuer };
            let answer = client.id_token(&outbound, &server, &request, response).await;
            assert!(matches!(answer, Err(OauthError::NotOurs)), "{issuer:?}");
        }
        let declined = OpenIdResponse { code: None, issuer: Some("https://idp.example") };
        let denied = client.id_token(&outbound, &server, &request, declined).await;
        assert!(matches!(denied, Err(OauthError::NotGranted(_))));
    }
}
