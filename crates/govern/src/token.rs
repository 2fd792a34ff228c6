//! Tokens in the form of RFC 7519 and RFC 9068: verification of a token against the keys and rules of its issuer.

use crate::directory::DirectoryClaims;
use crate::jwks::{JsonWebKeySet, TokenKey};
use arc_swap::ArcSwap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, crypto};
use serde_json::{Map, Value};
use signalbox_wire::{Limits, scan::scan};
use std::collections::HashSet;
use std::fmt;
use std::str::FromStr as _;
use std::sync::Arc;

/// Maximum size of a token, in bytes.
pub const MAX_TOKEN: usize = 16 * 1024;

/// Requirements on the tokens of an issuer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IssuerRules {
    /// Name in the configuration, and the first part of the issuer's principals.
    pub name: String,
    /// The exact `iss` of its tokens.
    pub issuer: String,
    /// Accepted audiences; `aud` must name one of them.
    pub audiences: Vec<String>,
    /// Signature algorithms that are accepted.
    pub algorithms: Vec<Algorithm>,
    /// Tolerated clock skew, in seconds.
    pub skew: u64,
    /// Claim that names the caller.
    pub subject_claim: String,
    /// Claims that hold roles, as member names joined by dots.
    pub role_claims: Vec<String>,
    /// Claims that hold groups.
    pub group_claims: Vec<String>,
    /// True if a token must have an id.
    pub require_id: bool,
}

/// Reason to refuse a token. The messages are for operators of clients; none repeats anything of the token.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TokenError {
    /// The token is not three parts of base64url, or is too large.
    #[error("the token is malformed")]
    Malformed,
    /// The header or the claims are not a JSON object without duplicate members.
    #[error("the token's {0} is not a JSON object with each member once")]
    Json(&'static str),
    /// No trusted issuer has this name.
    #[error("the token's issuer is not trusted")]
    Issuer,
    /// The algorithm is not allowed for the key.
    #[error("the token's algorithm is not allowed")]
    Algorithm,
    /// The header has a member that is never honoured: keys from elsewhere, or unknown critical members.
    #[error("the token's header names `{0}`, which is never honoured")]
    Header(&'static str),
    /// The issuer has no such key.
    #[error("the token is signed with a key that its issuer does not have")]
    Key,
    /// The signature does not match the key.
    #[error("the token's signature is wrong")]
    Signature,
    /// A claim is missing or of the wrong type.
    #[error("the token's claim `{0}` is missing or malformed")]
    Claim(&'static str),
    /// The audience is not this gateway.
    #[error("the token is meant for another audience")]
    Audience,
    /// The token has expired.
    #[error("the token has expired")]
    Expired,
    /// The token is not valid yet.
    #[error("the token is not valid yet")]
    Early,
    /// The issuer has revoked the token.
    #[error("the token is revoked")]
    Revoked,
}

/// Contents of a verified token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifiedClaims {
    /// Principal on whose behalf the holder calls: the issuer's name and the subject.
    pub principal: String,
    /// Id of the token, if it has one.
    pub id: Option<String>,
    /// Id of the key that signed it.
    pub kid: Option<Box<str>>,
    /// Expiry, in milliseconds since 1970.
    pub expires: u64,
    /// Client that it was issued to, if the token names it.
    pub client: Option<String>,
    /// Claims about the holder.
    pub said: DirectoryClaims,
}

/// Issuer with its keys, which can be replaced while tokens are verified.
pub struct TokenIssuer {
    /// Requirements on its tokens.
    pub rules: IssuerRules,
    keys: ArcSwap<JsonWebKeySet>,
    /// Ids of revoked tokens.
    revoked: ArcSwap<HashSet<String>>,
}

impl fmt::Debug for TokenIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenIssuer").field("rules", &self.rules).finish_non_exhaustive()
    }
}

/// Token split into its parts, not verified.
pub(crate) struct Parts<'a> {
    signed: &'a str,
    signature: &'a str,
    header: Map<String, Value>,
    claims: Map<String, Value>,
}

impl<'a> Parts<'a> {
    /// Splits a token and decodes its parts.
    pub fn of(token: &'a [u8]) -> Result<Self, TokenError> {
        let token = std::str::from_utf8(token).map_err(|_| TokenError::Malformed)?;
        if token.len() > MAX_TOKEN {
            return Err(TokenError::Malformed);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(TokenError::Malformed)?;
        if claims.contains('.') || signature.is_empty() {
            return Err(TokenError::Malformed);
        }
        Ok(Self { signed, signature, header: object(header, "header")?, claims: object(claims, "claims")? })
    }

    /// Returns the issuer that the token claims.
    pub fn issuer(&self) -> Option<&str> {
        self.claims.get("iss").and_then(Value::as_str)
    }

    /// Returns the id of the key that the token claims to be signed with.
    pub fn kid(&self) -> Option<&str> {
        self.header.get("kid").and_then(Value::as_str)
    }
}

fn object(part: &str, which: &'static str) -> Result<Map<String, Value>, TokenError> {
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Malformed)?;
    scan(&bytes, &Limits::default()).map_err(|_| TokenError::Json(which))?;
    serde_json::from_slice(&bytes).map_err(|_| TokenError::Json(which))
}

impl TokenIssuer {
    /// Creates an issuer with these keys.
    #[must_use]
    pub fn new(rules: IssuerRules, keys: JsonWebKeySet) -> Self {
        Self { rules, keys: ArcSwap::from_pointee(keys), revoked: ArcSwap::default() }
    }

    /// Returns the current keys.
    #[must_use]
    pub fn keys(&self) -> Arc<JsonWebKeySet> {
        self.keys.load_full()
    }

    pub fn replace_keys(&self, keys: JsonWebKeySet) {
        self.keys.store(Arc::new(keys));
    }

    /// Replaces the ids of revoked tokens.
    pub fn replace_revoked(&self, ids: HashSet<String>) {
        self.revoked.store(Arc::new(ids));
    }

    /// Returns true if the token with this id is revoked.
    #[must_use]
    pub fn is_revoked(&self, id: &str) -> bool {
        self.revoked.load().contains(id)
    }

    /// Verifies a token of this issuer at `now`, in milliseconds since 1970.
    pub(crate) fn verify(&self, parts: &Parts<'_>, now: u64) -> Result<VerifiedClaims, TokenError> {
        for never in ["jku", "x5u", "jwk", "crit"] {
            if parts.header.contains_key(never) {
                return Err(TokenError::Header(never));
            }
        }
        let algorithm = parts.header.get("alg").and_then(Value::as_str).ok_or(TokenError::Algorithm)?;
        let algorithm = Algorithm::from_str(algorithm).map_err(|_| TokenError::Algorithm)?;
        if !self.rules.algorithms.contains(&algorithm) {
            return Err(TokenError::Algorithm);
        }
        if parts.header.get("kid").is_some_and(|kid| !kid.is_string()) {
            return Err(TokenError::Key);
        }
        let keys = self.keys.load();
        let key = keys.find(parts.kid(), algorithm).ok_or(TokenError::Key)?;
        let good = crypto::verify(parts.signature, parts.signed.as_bytes(), &key.key, algorithm);
        match good {
            Ok(true) => self.claims(parts, key, now),
            _ => Err(TokenError::Signature),
        }
    }

    /// Verifies an OpenID Connect ID token that was requested with `nonce`, at `now` in milliseconds since 1970.
    ///
    /// # Errors
    /// If the token is not valid, or answers another request.
    pub fn verify_id_token(&self, token: &[u8], nonce: &str, now: u64) -> Result<VerifiedClaims, TokenError> {
        let parts = Parts::of(token)?;
        let verified = self.verify(&parts, now)?;
        if parts.claims.get("nonce").and_then(Value::as_str) != Some(nonce) {
            return Err(TokenError::Claim("nonce"));
        }
        let party = text(&parts.claims, "azp")?;
        match party.is_some_and(|party| !self.rules.audiences.contains(&party)) {
            true => Err(TokenError::Audience),
            false => Ok(verified),
        }
    }

    fn claims(&self, parts: &Parts<'_>, key: &TokenKey, now: u64) -> Result<VerifiedClaims, TokenError> {
        let claims = &parts.claims;
        if parts.issuer() != Some(&self.rules.issuer) {
            return Err(TokenError::Issuer);
        }
        if !strings(claims.get("aud")).iter().any(|aud| self.rules.audiences.contains(aud)) {
            return Err(TokenError::Audience);
        }
        let skew = self.rules.skew * 1_000;
        let expires = time(claims, "exp")?.ok_or(TokenError::Claim("exp"))?;
        if expires.saturating_add(skew) <= now {
            return Err(TokenError::Expired);
        }
        let early = |at: Option<u64>| at.is_some_and(|at| at > now.saturating_add(skew));
        if early(time(claims, "nbf")?) || early(time(claims, "iat")?) {
            return Err(TokenError::Early);
        }
        let subject = claims.get(&self.rules.subject_claim).and_then(Value::as_str);
        let subject = subject.filter(|subject| is_name(subject)).ok_or(TokenError::Claim("sub"))?;
        let id = text(claims, "jti")?;
        if self.rules.require_id && id.is_none() {
            return Err(TokenError::Claim("jti"));
        }
        if id.as_deref().is_some_and(|id| self.is_revoked(id)) {
            return Err(TokenError::Revoked);
        }
        Ok(VerifiedClaims {
            principal: format!("{}:{subject}", self.rules.name),
            id,
            kid: key.kid.clone(),
            expires: expires.saturating_add(skew),
            client: text(claims, "client_id")?.or(text(claims, "azp")?),
            said: self.holder_claims(claims),
        })
    }

    fn holder_claims(&self, claims: &Map<String, Value>) -> DirectoryClaims {
        let all = |paths: &[String]| paths.iter().flat_map(|path| strings(member(claims, path))).collect();
        let scopes = match (claims.get("scope"), claims.get("scp")) {
            (Some(Value::String(scope)), _) | (None, Some(Value::String(scope))) => {
                Some(scope.split_ascii_whitespace().map(str::to_owned).collect())
            }
            (Some(list), _) | (None, Some(list)) => Some(strings(Some(list))),
            (None, None) => Some(Vec::new()),
        };
        DirectoryClaims {
            roles: all(&self.rules.role_claims),
            groups: all(&self.rules.group_claims),
            scopes,
            trust: None,
        }
    }
}

/// Returns true for a name that is fit for a principal: not empty, not long, and without control characters, so that
/// logs can show it.
fn is_name(subject: &str) -> bool {
    !subject.is_empty() && subject.len() <= 256 && !subject.chars().any(char::is_control)
}

/// Resolves a path of member names joined by dots.
fn member<'a>(claims: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    // Some issuers use a URL as the name of a claim.
    if let Some(whole) = claims.get(path) {
        return Some(whole);
    }
    let mut names = path.split('.');
    let first = claims.get(names.next()?)?;
    names.try_fold(first, |value, name| value.get(name))
}

/// Returns a string, or the strings of a list.
fn strings(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// Returns a claim that must be a string, if present.
fn text(claims: &Map<String, Value>, name: &'static str) -> Result<Option<String>, TokenError> {
    match claims.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(TokenError::Claim(name)),
    }
}

/// Returns a claim that is a time in seconds, whole or not, as milliseconds.
fn time(claims: &Map<String, Value>, name: &'static str) -> Result<Option<u64>, TokenError> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    let seconds = value.as_f64().filter(|seconds| (0.0..1e12).contains(seconds)).ok_or(TokenError::Claim(name))?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked above")]
    let millis = (seconds * 1_000.0) as u64;
    Ok(Some(millis))
}
