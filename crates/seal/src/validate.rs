//! Validation of requests in three stages: syntax, semantics, security.
//!
//! | stage | full | light |
//! |---|---|---|
//! | syntax | times within the window, expiry, purpose not expired, at least one permission, a whole signature, a revision | times, expiry, a whole signature |
//! | semantics | actions fit the category, resources are among the data types, frequency, scope | nothing |
//! | security | the key is trusted and fits the identity, the signature fits, names were changed by trusted gateways only, the nonce is new | the same |
//!
//! The light mode is for MCP calls: `tools/list` needs no purpose.

mod semantics;
mod validation_error;

pub use semantics::{MAX_FREQUENCY_PER_HOUR, allowed_actions};
pub use validation_error::{SecurityError, SemanticsError, SyntaxError, ValidationError};

use crate::key_set::{KeyRole, KeySet};
use crate::message_error::MessageError;
use crate::nonces::{NonceMemory, NonceVerdict};
use crate::prepare::{
    check_signature, fields, follow_names, prepare_request_for_signing, profile_of, verify_signature,
};
use crate::profile::Profile;
use crate::proto::McpRequest;
use crate::time_window::TimeWindow;
use signalbox_wire::hex::hex;

const NANOS_PER_SECOND: i64 = 1_000_000_000;
const NANOS_PER_MILLI: i64 = 1_000_000;

/// Checks that are performed.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum ValidationMode {
    /// Checks time, trust, nonce and expiry.
    #[default]
    Light,
    /// Also checks purpose and permissions.
    Full,
}

/// Validator of requests, with its rules.
#[derive(Copy, Clone)]
pub struct Validator<'a> {
    /// Checks that are performed.
    pub mode: ValidationMode,
    /// Tolerated age of a request, and how far it may be ahead.
    pub window: TimeWindow,
    /// Keys that the validator trusts.
    pub keys: &'a KeySet,
    /// Nonces of requests that were accepted.
    pub nonces: &'a dyn NonceMemory,
    /// Canonical profiles that are accepted.
    pub profiles: &'a [Profile],
    /// Maximum `max_frequency_per_hour`; [`MAX_FREQUENCY_PER_HOUR`] by default.
    pub max_frequency_per_hour: u32,
}

impl<'a> Validator<'a> {
    /// Creates a validator with the default limits, which accepts both profiles.
    #[must_use]
    pub fn new(mode: ValidationMode, keys: &'a KeySet, nonces: &'a dyn NonceMemory) -> Self {
        let (window, profiles) = (TimeWindow::default(), &Profile::ALL);
        Self { mode, window, keys, nonces, profiles, max_frequency_per_hour: MAX_FREQUENCY_PER_HOUR }
    }

    /// Validates a request at `now` (nanoseconds since 1970). Returns the principal of the signer.
    ///
    /// # Errors
    /// The first check that fails, by stage.
    pub fn request(&self, request: &McpRequest, now: i64) -> Result<&'a str, ValidationError> {
        self.syntax(request, now)?;
        if self.mode == ValidationMode::Full {
            semantics::check(request, self.max_frequency_per_hour)?;
        }
        Ok(self.security(request, now)?)
    }

    fn syntax(&self, request: &McpRequest, now: i64) -> Result<(), SyntaxError> {
        let made = request.timestamp.as_ref().ok_or(SyntaxError::Missing("timestamp"))?;
        let made = fields::nanos("timestamp", made)?;
        let expiry = request.request_expiry.as_ref().map(|time| fields::nanos("request_expiry", time)).transpose()?;
        self.window.check(made, expiry, now)?;
        let signature = request.signature.as_ref().ok_or(SyntaxError::Missing("signature"))?;
        for (empty, field) in [
            (signature.key_id.is_empty(), "signature.key_id"),
            (signature.algorithm.is_empty(), "signature.algorithm"),
            (signature.signature.is_empty(), "signature.signature"),
        ] {
            if empty {
                return Err(SyntaxError::Missing(field));
            }
        }
        if self.mode == ValidationMode::Light {
            return Ok(());
        }
        if request.mcp_version.is_empty() {
            return Err(SyntaxError::Missing("mcp_version"));
        }
        let purpose = request.purpose_dna.as_ref().ok_or(SyntaxError::Missing("purpose_dna"))?;
        let ends = purpose.purpose_expiry.as_ref().map(|time| fields::nanos("purpose_expiry", time)).transpose()?;
        if ends.is_some_and(|ends| ends <= now) {
            return Err(SyntaxError::PurposeExpired);
        }
        if request.permissions.is_empty() { Err(SyntaxError::Missing("permissions")) } else { Ok(()) }
    }

    fn security(&self, request: &McpRequest, now: i64) -> Result<&'a str, SecurityError> {
        let signature = request.signature.as_ref().ok_or(SecurityError::Unsigned)?;
        let profile = profile_of(&request.profile).map_err(MessageError::from)?;
        if !self.profiles.contains(&profile) {
            return Err(SecurityError::ProfileNotAccepted(profile));
        }
        let seconds = now.div_euclid(NANOS_PER_SECOND);
        let key = self.keys.trusted(&signature.key_id, &[KeyRole::Client, KeyRole::Gateway], seconds)?;
        let identity = request.requestor_identity.as_ref().map(|identity| identity.public_key.as_ref());
        if identity.is_some_and(|public| !public.is_empty() && public != key.key.as_bytes()) {
            return Err(SecurityError::OtherIdentity);
        }
        // All checks above are cheap. The canonical form is not, and any sender can trigger it.
        check_signature(&signature.signature, &signature.algorithm)?;
        if self.nonces.is_remembered(&signature.key_id, &nonce_of(request), millis(now)) {
            return Err(SecurityError::Replayed);
        }
        let prepared = prepare_request_for_signing(request)?;
        if !verify_signature(key.key.as_bytes(), &prepared, &signature.signature, &signature.algorithm)? {
            return Err(SecurityError::Tampered);
        }
        follow_names(request, self.keys, seconds)?;
        self.remember(request, &signature.key_id, now)?;
        Ok(&key.name)
    }

    fn remember(&self, request: &McpRequest, key_id: &str, now: i64) -> Result<(), SecurityError> {
        let made = request.timestamp.as_ref().map_or(Ok(now), |time| fields::nanos("timestamp", time))?;
        let expiry = request.request_expiry.as_ref().map(|time| fields::nanos("request_expiry", time)).transpose()?;
        let behind = i64::try_from(self.window.behind.as_nanos()).unwrap_or(i64::MAX);
        let until = made.saturating_add(behind).min(expiry.unwrap_or(i64::MAX));
        match self.nonces.remember(key_id, &nonce_of(request), millis(now), millis(until).saturating_add(1)) {
            NonceVerdict::New => Ok(()),
            NonceVerdict::Replayed => Err(SecurityError::Replayed),
            NonceVerdict::Full => Err(SecurityError::TooManyNonces),
        }
    }
}

/// Returns the nonce of a request. Without a nonce field, it is the signature, which no other request shares.
fn nonce_of(request: &McpRequest) -> String {
    let signature = request.signature.as_ref().map(|signature| signature.signature.as_ref()).unwrap_or_default();
    hex(if request.nonce.is_empty() { signature } else { &request.nonce })
}

fn millis(nanos: i64) -> u64 {
    u64::try_from(nanos / NANOS_PER_MILLI).unwrap_or(0)
}

#[cfg(test)]
mod tests;
