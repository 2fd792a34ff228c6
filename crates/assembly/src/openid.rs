//! Sign-ins of people at an OpenID provider, for the gateway's own authorization server.

use signalbox_config::auth_server::OpenIdProvider;
use signalbox_engine::bounded::make_room;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_govern::{IssuerRules, JsonWebKeySet, JsonWebKeySetError, TokenError, TokenIssuer};
use signalbox_oauth_client::openid::{OpenIdClient, OpenIdRequest, OpenIdResponse};
use signalbox_oauth_client::outbound::OutboundSettings;
use signalbox_oauth_client::{OauthError, SecretText};
use signalbox_oauth_server::metadata::OPENID;
use signalbox_oauth_server::{Moment, Person};
use std::collections::HashMap;
use std::sync::Mutex;

/// Time limit for a sign-in at the provider, in seconds.
const TIME: u64 = 600;
/// Maximum number of pending sign-ins. A new one replaces the oldest.
const MAX_PENDING: usize = 1_000;
/// Signature algorithms accepted from a provider.
const ALGORITHMS: [&str; 5] = ["RS256", "PS256", "ES256", "ES384", "EdDSA"];

/// Reason why a sign-in failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenIdError {
    /// The provider is unreachable or refuses the request.
    #[error(transparent)]
    Ask(#[from] OauthError),
    /// The provider's metadata names no key set.
    #[error("the provider does not say where its keys are")]
    NoKeys,
    /// The provider's keys are unusable.
    #[error(transparent)]
    Keys(#[from] JsonWebKeySetError),
    /// The ID token does not verify.
    #[error("the ID token: {0}")]
    Token(#[from] TokenError),
}

/// Sign-in that is pending at the provider.
pub(crate) struct Pending {
    /// Ticket of the sign-in at the authorization server.
    pub ticket: String,
    request: OpenIdRequest,
    expires: u64,
}

/// OpenID provider with its pending sign-ins.
pub(crate) struct OpenId {
    client: OpenIdClient,
    rules: IssuerRules,
    pending: Mutex<HashMap<String, Pending>>,
}

impl OpenId {
    /// Creates the client of the configured provider, for the authorization server at the address `server`.
    pub fn new(provider: &OpenIdProvider, server: &str) -> Self {
        let client = OpenIdClient {
            issuer: provider.issuer.clone(),
            client_id: provider.client_id.clone(),
            secret: provider.secret.clone(),
            redirect_uri: format!("{server}{OPENID}"),
            scopes: provider.scopes.clone(),
        };
        let rules = IssuerRules {
            // Prefix of the provider's users, which no local user has.
            name: "openid".to_owned(),
            issuer: provider.issuer.clone(),
            audiences: vec![provider.client_id.clone()],
            algorithms: ALGORITHMS.iter().filter_map(|word| word.parse().ok()).collect(),
            skew: 60,
            subject_claim: provider.subject_claim.clone(),
            role_claims: Vec::new(),
            group_claims: provider.group_claims.clone(),
            require_id: false,
        };
        Self { client, rules, pending: Mutex::default() }
    }

    /// Starts a sign-in for this ticket and returns the URL for the browser.
    pub async fn begin(
        &self,
        outbound: &OutboundSettings,
        ticket: &str,
        moment: &Moment,
    ) -> Result<String, OpenIdError> {
        let server = self.client.metadata(outbound).await?;
        let (state, nonce, verifier) = (moment.draw(), moment.draw(), SecretText::new(moment.draw()));
        let request = OpenIdRequest { state, nonce, verifier };
        let url = self.client.authorization_url(&server, &request)?;
        let mut pending = self.pending.lock().unpoisoned();
        pending.retain(|_, one| one.expires > moment.now);
        make_room(&mut pending, MAX_PENDING, |one| one.expires);
        let one = Pending { ticket: ticket.to_owned(), request: request.clone(), expires: moment.after(TIME) };
        pending.insert(request.state, one);
        Ok(url)
    }

    /// Removes and returns the pending sign-in with this state, unless it has expired. A state works once.
    pub fn take(&self, state: &str, now: u64) -> Option<Pending> {
        self.pending.lock().unpoisoned().remove(state).filter(|one| one.expires > now)
    }

    /// Returns the person that the provider's ID token names, for the code and issuer that the browser returned with.
    pub async fn person(
        &self,
        outbound: &OutboundSettings,
        pending: &Pending,
        response: OpenIdResponse<'_>,
        now: u64,
    ) -> Result<Person, OpenIdError> {
        let server = self.client.metadata(outbound).await?;
        let token = self.client.id_token(outbound, &server, &pending.request, response).await?;
        let keys = outbound.get(server.jwks_uri.as_deref().ok_or(OpenIdError::NoKeys)?).await?;
        let keys = JsonWebKeySet::parse(&String::from_utf8_lossy(&keys.body), &self.rules.algorithms)?;
        let issuer = TokenIssuer::new(self.rules.clone(), keys);
        let verified = issuer.verify_id_token(token.expose().as_bytes(), &pending.request.nonce, now)?;
        Ok(Person::of_provider(&self.rules.issuer, verified.principal, verified.said.groups, now))
    }
}
