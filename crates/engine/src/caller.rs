//! Who calls, and how that was proved. Made once per request, before its body is read, and carried from there through
//! sessions, exchanges, connections and facts.
//!
//! What a client says of itself (its name, its version, its capabilities) is no part of it: that is claimed, and lives in
//! [`crate::ClientProfile`].

use crate::principal::Principal;
use core::net::SocketAddr;
use std::sync::Arc;

/// How a caller proved who it is.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Proof {
    /// Not at all: a caller on the loopback address while authentication is not required.
    Unproved,
    /// By the key of a client certificate that a trusted authority has signed.
    Certificate,
    /// By owning the pipe or the socket of the process.
    LocalUser,
    /// It is the gateway itself.
    Gateway,
}

impl Proof {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Unproved, Self::Certificate, Self::LocalUser, Self::Gateway];

    /// The word for it in facts and on tapes.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Unproved => "none",
            Self::Certificate => "certificate",
            Self::LocalUser => "local_user",
            Self::Gateway => "gateway",
        }
    }
}

/// What a caller is known by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// On whose behalf it calls.
    pub principal: Principal,
    /// How that was proved.
    pub proof: Proof,
    /// What the proof says besides, as name and value: the subject of a certificate, say.
    pub claims: Vec<(Box<str>, Box<str>)>,
    /// Where it calls from, where that is known.
    pub address: Option<SocketAddr>,
    /// How it came: `http`, `sse`, `websocket`, `stdio`, `tcp`, `control`; empty for the gateway itself.
    pub transport: &'static str,
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

    /// A caller of whom nothing but this is known.
    #[must_use]
    pub fn of(principal: Principal, proof: Proof, transport: &'static str) -> Self {
        Self::new(Identity { principal, proof, claims: Vec::new(), address: None, transport })
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

    /// The gateway itself, whose own traffic is nobody else's. Its connections are opened for `principal`.
    #[must_use]
    pub fn gateway(principal: Principal) -> Self {
        Self::of(principal, Proof::Gateway, "")
    }

    /// On whose behalf it calls.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.0.principal
    }

    /// All that is known of it.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.0
    }

    /// True where both are one and the same object, which is quicker to tell than whether they are equal.
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
