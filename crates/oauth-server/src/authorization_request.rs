//! Authorization requests: validated, and bound to a redirect URI.

use crate::client::Client;
use crate::event::AuthEvent;
use crate::reply::{OauthRefusal, Reply};
use crate::settings::ServerSettings;
use signalbox_oauth_client::form;
use signalbox_oauth_client::web_address::canonical;

/// Validated authorization request, ready to be shown to a person.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AuthorizationRequest {
    pub client: Client,
    /// Redirect URI of the response.
    pub redirect_uri: String,
    /// True if the client named it in the request.
    pub redirect_given: bool,
    /// State that is returned to the client.
    pub state: Option<String>,
    pub challenge: String,
    pub scopes: Vec<String>,
}

/// Parameters of a request, without duplicates.
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    pub fn read(text: &str) -> Option<Self> {
        form::read(text).map(Self)
    }

    /// Returns a non-empty parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }
}

impl AuthorizationRequest {
    /// Parses the request of a known client. Errors go only to the person at the browser until the redirect URI is
    /// validated.
    pub fn read(parameters: &Parameters, client: Client, settings: &ServerSettings) -> Result<Self, Box<Reply>> {
        let given = parameters.get("redirect_uri");
        let redirect_uri = match (given, client.redirect_uris.as_slice()) {
            (Some(uri), _) if client.accepts(uri) => uri.to_owned(),
            (None, [only]) => only.clone(),
            _ => {
                let text = "The application named an address to return to that is not one of its own.";
                return Err(Box::new(crate::pages::stop(400, text)));
            }
        };
        let mut asked = Self {
            client,
            redirect_uri,
            redirect_given: given.is_some(),
            state: parameters.get("state").map(str::to_owned),
            challenge: String::new(),
            scopes: settings.granted(parameters.get("scope")),
        };
        match asked.check(parameters, settings) {
            Ok(challenge) => {
                asked.challenge = challenge;
                Ok(asked)
            }
            Err(refusal) => Err(Box::new(asked.refused(settings, refusal))),
        }
    }

    fn check(&self, parameters: &Parameters, settings: &ServerSettings) -> Result<String, OauthRefusal> {
        let bad = |why| Err(OauthRefusal::new("invalid_request", why));
        if parameters.get("request").is_some() || parameters.get("request_uri").is_some() {
            return Err(OauthRefusal::new("request_not_supported", "parameters belong in the query"));
        }
        match parameters.get("response_type") {
            Some("code") => {}
            None => return bad("response_type is missing"),
            Some(_) => return Err(OauthRefusal::new("unsupported_response_type", "only `code` is supported")),
        }
        if parameters.get("response_mode").is_some_and(|mode| mode != "query") {
            return bad("only the response mode `query` is supported");
        }
        if parameters.get("code_challenge_method") != Some("S256") {
            return bad("PKCE with S256 is required");
        }
        let Some(challenge) = parameters.get("code_challenge").filter(|text| text.len() == 43 && is_unreserved(text))
        else {
            return bad("code_challenge is missing or not one of S256");
        };
        check_resource(parameters, settings)?;
        if parameters.get("prompt").is_some_and(|prompt| prompt.split(' ').any(|word| word == "none")) {
            return Err(OauthRefusal::new("login_required", "a person is always asked"));
        }
        Ok(challenge.to_owned())
    }

    /// Redirects the browser to the client with this response.
    pub fn answer(&self, settings: &ServerSettings, pairs: &[(&str, &str)]) -> Reply {
        let mut pairs = pairs.to_vec();
        pairs.extend(self.state.as_deref().map(|state| ("state", state)));
        pairs.push(("iss", &settings.issuer));
        Reply::redirect(form::extend(&self.redirect_uri, &pairs))
    }

    /// Redirects the browser to the client with an error.
    pub fn refused(&self, settings: &ServerSettings, refusal: OauthRefusal) -> Reply {
        let reply = self.answer(settings, &[("error", refusal.code), ("error_description", refusal.why)]);
        reply.with_event(AuthEvent::refused(refusal.to_string())).with_client(Some(&self.client.id))
    }
}

/// Checks that the request names this resource or none. Clients of older revisions name none.
pub(crate) fn check_resource(parameters: &Parameters, settings: &ServerSettings) -> Result<(), OauthRefusal> {
    let own = canonical(settings.resource.as_str());
    let is_own = |resource: &str| {
        let named = canonical(resource).filter(|_| !resource.contains('#'));
        named.is_some_and(|named| own.as_ref() == Some(&named) || settings.resource.is_own(&named))
    };
    match parameters.get("resource") {
        Some(resource) if !is_own(resource) => {
            Err(OauthRefusal::new("invalid_target", "tokens for this resource are given elsewhere"))
        }
        _ => Ok(()),
    }
}

/// Returns true if a text consists of unreserved characters, as a challenge or a verifier does.
pub(crate) fn is_unreserved(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~'))
}
