//! Who calls, and how that was proved. A caller is made once per request, before its body is read, and carried from
//! there through sessions, exchanges, connections and facts.
//!
//! What a client says about itself (name, version, capabilities) is not part of it: that is only claimed, and is kept
//! in [`crate::ClientProfile`].

use crate::standing::{Standing, SubjectToken, TrustLevel};
use core::net::SocketAddr;
use std::sync::Arc;

/// The identity on whose behalf a call runs. There is no default: every constructor names one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Principal(Arc<str>);

impl Principal {
    /// A loopback caller of the HTTP front while authentication is not required.
    #[must_use]
    pub fn anonymous() -> Self {
        Self(Arc::from("anonymous"))
    }

    /// The person who started `signalbox stdio`: whoever owns the pipe.
    #[must_use]
    pub fn local(user: &str) -> Self {
        Self(Arc::from(format!("local:{user}")))
    }

    /// Whoever holds the key of a client certificate that a trusted authority has signed, by the certificate's SHA-256.
    #[must_use]
    pub fn certificate(fingerprint: &str) -> Self {
        Self(Arc::from(format!("cert:{fingerprint}")))
    }

    /// The principal of this name, as [`Principal::as_str`] returned it.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self(Arc::from(name))
    }

    /// Stands for an account that is gone, so that what it left belongs to no caller. No caller can be it: names
    /// have no such character.
    #[must_use]
    pub fn gone(number: u64) -> Self {
        Self(Arc::from(format!("\0{number}")))
    }

    /// True for the owner of a pipe.
    #[must_use]
    pub fn owns_pipe(&self) -> bool {
        self.0.starts_with("local:")
    }

    /// The name, shared.
    #[must_use]
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    /// The name as it appears in logs, facts and keys.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Principal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a caller proved who it is.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Proof {
    /// Not at all: a caller on the loopback address while authentication is not required.
    Unproved,
    /// By the key of a client certificate that a trusted authority has signed.
    Certificate,
    /// By a signature that the message carries.
    Signature,
    /// By an API key of this gateway.
    ApiKey,
    /// By a token that a trusted issuer has signed.
    Token,
    /// By owning the pipe or the socket of the process.
    LocalUser,
    /// It is the gateway itself.
    Gateway,
}

impl Proof {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Unproved, Self::Certificate, Self::Signature, Self::ApiKey, Self::Token, Self::LocalUser, Self::Gateway];

    /// The word for it in facts and on tapes.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Unproved => "none",
            Self::Certificate => "certificate",
            Self::Signature => "signature",
            Self::ApiKey => "api_key",
            Self::Token => "token",
            Self::LocalUser => "local_user",
            Self::Gateway => "gateway",
        }
    }
}

/// The identity of a caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// On whose behalf it calls.
    pub principal: Principal,
    /// How that was proved.
    pub proof: Proof,
    /// Further claims of the proof as (name, value), such as the subject of a certificate.
    pub claims: Vec<(Box<str>, Box<str>)>,
    /// Where it calls from, if known.
    pub address: Option<SocketAddr>,
    /// The transport: `http`, `sse`, `websocket`, `stdio`, `tcp`, `control`; empty for the gateway itself.
    pub transport: &'static str,
    /// What is known of it besides; nothing where nobody configured users.
    pub standing: Option<Arc<Standing>>,
}

impl Identity {
    /// How far it is trusted. Without a standing that depends on the proof alone.
    #[must_use]
    pub fn trust(&self) -> TrustLevel {
        match (&self.standing, self.proof) {
            (Some(standing), _) => standing.trust,
            (None, Proof::LocalUser | Proof::Gateway) => TrustLevel::System,
            (None, Proof::Unproved) => TrustLevel::Untrusted,
            (None, _) => TrustLevel::Verified,
        }
    }

    /// True if it has this role.
    #[must_use]
    pub fn has_role(&self, role: &str) -> bool {
        self.standing.as_ref().is_some_and(|standing| standing.has_role(role))
    }
}

/// A caller. Copies share one identity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller(Arc<Identity>);

impl Caller {
    /// The caller of this identity.
    #[must_use]
    pub fn new(identity: Identity) -> Self {
        Self(Arc::new(identity))
    }

    /// A caller with no claims, address or transport.
    #[must_use]
    pub fn of(principal: Principal, proof: Proof, transport: &'static str) -> Self {
        Self::new(Identity { principal, proof, claims: Vec::new(), address: None, transport, standing: None })
    }

    /// Somebody on the loopback address who has proved nothing.
    #[must_use]
    pub fn anonymous(transport: &'static str) -> Self {
        Self::of(Principal::anonymous(), Proof::Unproved, transport)
    }

    /// The user who owns the pipe.
    #[must_use]
    pub fn local(user: &str, transport: &'static str) -> Self {
        Self::of(Principal::local(user), Proof::LocalUser, transport)
    }

    /// The gateway itself, for its own traffic. Its connections are opened for `principal`.
    #[must_use]
    pub fn gateway(principal: Principal) -> Self {
        Self::of(principal, Proof::Gateway, "")
    }

    /// On whose behalf it calls.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.0.principal
    }

    /// The whole identity.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.0
    }

    /// Its token, where a backend is reached with what tokens are exchanged for.
    #[must_use]
    pub fn subject_token(&self) -> Option<&SubjectToken> {
        self.0.standing.as_ref()?.credential.as_ref()?.token.as_ref()
    }

    /// The reason why its credential is not good at this time, in milliseconds since 1970; `None` if it is
    /// good or cannot end.
    #[must_use]
    pub fn credential_fault(&self, now: u64) -> Option<&'static str> {
        self.0.standing.as_ref()?.credential.as_ref()?.fault(now)
    }

    /// True if it proved itself with something that can expire or be revoked.
    #[must_use]
    pub fn can_end(&self) -> bool {
        self.0.standing.as_ref().is_some_and(|standing| standing.credential.is_some())
    }

    /// True if what is known of it still holds at this time, in milliseconds since 1970.
    #[must_use]
    pub fn is_current(&self, now: u64) -> bool {
        let credential = self.0.standing.as_ref().and_then(|standing| standing.credential.as_ref());
        credential.is_none_or(|credential| credential.is_current(now))
    }

    /// True if both share one identity object, which is quicker to check than equality.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl std::fmt::Display for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.principal().fmt(f)
    }
}
