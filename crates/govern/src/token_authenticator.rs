//! Authenticates callers by bearer tokens of trusted issuers.

use crate::directory::Directory;
use crate::key_authenticator::Refresh;
use crate::token::{Parts, TokenError, TokenIssuer, VerifiedClaims};
use crate::verified_tokens::{VerifiedToken, VerifiedTokens};
use crate::{api_keys, bearer, invalid};
use arc_swap::ArcSwap;
use signalbox_engine::authenticator::{Arrival, Authenticator};
use signalbox_engine::caller::Identity;
use signalbox_engine::caller_tokens::CallerTokens;
use signalbox_engine::standing::{Credential, SubjectToken};
use signalbox_engine::{Fault, Principal, Proof};
use std::fmt;
use std::sync::Arc;

/// Reason to refresh the keys of an issuer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum KeyRefreshReason {
    /// A token is about to be verified: keys that can be read at once are refreshed.
    BeforeUse,
    /// A token names a key that the issuer did not have at the last refresh.
    Unknown,
}

/// Callback that refreshes the keys of an issuer.
pub type KeySupply = Box<dyn Fn(&TokenIssuer, KeyRefreshReason) + Send + Sync>;

/// Authenticator for bearer tokens.
pub struct TokenAuthenticator {
    issuers: Vec<Arc<TokenIssuer>>,
    directory: Arc<ArcSwap<Directory>>,
    tokens: VerifiedTokens,
    supply: KeySupply,
    refresh: Option<Refresh>,
    callers: Arc<CallerTokens>,
}

impl fmt::Debug for TokenAuthenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenAuthenticator").field("issuers", &self.issuers).finish_non_exhaustive()
    }
}

impl TokenAuthenticator {
    /// Creates an authenticator that trusts these issuers.
    #[must_use]
    pub fn new(issuers: Vec<Arc<TokenIssuer>>, directory: Arc<ArcSwap<Directory>>, supply: KeySupply) -> Self {
        Self { issuers, directory, tokens: VerifiedTokens::default(), supply, refresh: None, callers: Arc::default() }
    }

    /// Sets the callback to run before each lookup of a token, including one from the cache, so that a revoked token is
    /// not accepted once more.
    #[must_use]
    pub fn refreshed_by(self, refresh: Refresh) -> Self {
        Self { refresh: Some(refresh), ..self }
    }

    /// Keeps the callers' tokens for backends that need them.
    #[must_use]
    pub fn keeping(self, callers: Arc<CallerTokens>) -> Self {
        Self { callers, ..self }
    }

    /// Returns the cache of verified tokens.
    #[must_use]
    pub fn tokens(&self) -> &VerifiedTokens {
        &self.tokens
    }

    /// Revokes the tokens whose key their issuer no longer has.
    pub fn withdraw_keys(&self, issuer: &TokenIssuer) -> usize {
        let keys = issuer.keys();
        self.tokens.revoke(|token| *token.issuer == *issuer.rules.name && !keys.knows(token.kid.as_deref()))
    }

    /// Revokes the tokens whose id their issuer has revoked.
    pub fn withdraw_ids(&self, issuer: &TokenIssuer) -> usize {
        let prefix = format!("{}/", issuer.rules.name);
        self.tokens.revoke(|token| {
            let id = token.standing.credential.as_ref().and_then(|credential| credential.id.strip_prefix(&prefix));
            *token.issuer == *issuer.rules.name && id.is_some_and(|id| issuer.is_revoked(id))
        })
    }

    fn verify(&self, token: &[u8], now: u64) -> Result<VerifiedToken, TokenError> {
        let parts = Parts::of(token)?;
        let named = |issuer: &&Arc<TokenIssuer>| parts.issuer() == Some(&issuer.rules.issuer);
        let issuer = self.issuers.iter().find(named).ok_or(TokenError::Issuer)?;
        (self.supply)(issuer, KeyRefreshReason::BeforeUse);
        let verified = issuer.verify(&parts, now).inspect_err(|error| {
            if *error == TokenError::Key {
                (self.supply)(issuer, KeyRefreshReason::Unknown);
            }
        })?;
        let token_kept = self.keep(issuer, verified, token);
        self.tokens.insert(token, token_kept.clone(), now);
        Ok(token_kept)
    }

    fn keep(&self, issuer: &TokenIssuer, verified: VerifiedClaims, token: &[u8]) -> VerifiedToken {
        let id = format!("{}/{}", issuer.rules.name, verified.id.as_deref().unwrap_or("-"));
        let (mut credential, revocation) = Credential::new(&id, Some(verified.expires));
        let subject = std::str::from_utf8(token).ok().filter(|_| self.callers.is_wanted());
        credential.token = subject.map(SubjectToken::new);
        let mut claims: Vec<(Box<str>, Box<str>)> = vec![("issuer".into(), issuer.rules.issuer.as_str().into())];
        claims.extend(verified.client.map(|client| ("client_id".into(), client.into())));
        let standing = self.directory.load().standing(&verified.principal, verified.said, Some(credential));
        VerifiedToken {
            principal: Principal::named(&verified.principal),
            standing,
            claims,
            issuer: issuer.rules.name.as_str().into(),
            kid: verified.kid,
            revocations: vec![revocation],
        }
    }
}

impl Authenticator for TokenAuthenticator {
    fn name(&self) -> &'static str {
        "token"
    }

    fn identify(&self, arrival: &Arrival<'_>) -> Result<Option<Identity>, Fault> {
        let Some(token) = bearer(arrival).filter(|token| !token.starts_with(api_keys::PREFIX.as_bytes())) else {
            return Ok(None);
        };
        if let Some(refresh) = &self.refresh {
            refresh();
        }
        // A token that was cached before a backend needed it has no subject token.
        let lacks_token = |known: &VerifiedToken| {
            self.callers.is_wanted() && known.standing.credential.as_ref().is_some_and(|one| one.token.is_none())
        };
        let known = match self.tokens.get(token, arrival.now).filter(|known| !lacks_token(known)) {
            Some(known) => known,
            None => self.verify(token, arrival.now).map_err(|error| invalid(&error.to_string()))?,
        };
        Ok(Some(Identity {
            principal: known.principal,
            proof: Proof::Token,
            claims: known.claims,
            address: arrival.address,
            transport: arrival.transport,
            standing: Some(known.standing),
        }))
    }

    fn is_per_request(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
