//! Callers and the proof of their identity. A caller is created once per request, before its body is read, and carried
//! from there through sessions, exchanges, connections and facts.
//!
//! The client's own claims (name, version, capabilities) are not part of it, because they are unproved. They are in
//! [`crate::ClientProfile`].

use crate::standing::{Standing, SubjectToken, TrustLevel};
use core::net::SocketAddr;
use std::sync::Arc;

/// Identity on whose behalf a call runs. There is no default: every constructor names one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Principal(Arc<str>);

impl Principal {
    /// Returns the principal of loopback callers of the HTTP front while authentication is off.
    #[must_use]
    pub fn anonymous() -> Self {
        Self(Arc::from("anonymous"))
    }

    /// Returns the principal of the user who started `signalbox stdio` and owns the pipe.
    #[must_use]
    pub fn local(user: &str) -> Self {
        Self(Arc::from(format!("local:{user}")))
    }

    /// Returns the principal of the holder of a client certificate that a trusted authority has signed, by the
    /// certificate's SHA-256.
    #[must_use]
    pub fn certificate(fingerprint: &str) -> Self {
        Self(Arc::from(format!("cert:{fingerprint}")))
    }

    /// Returns the principal with this name, as returned by [`Principal::as_str`].
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self(Arc::from(name))
    }

    /// Returns a stand-in for a deleted account, so that its leftovers belong to no caller. No caller can have this
    /// name, because names cannot contain its first character.
    #[must_use]
    pub fn gone(number: u64) -> Self {
        Self(Arc::from(format!("\0{number}")))
    }

    /// Returns true for the owner of a pipe.
    #[must_use]
    pub fn owns_pipe(&self) -> bool {
        self.0.starts_with("local:")
    }

    /// Returns the name without copying it.
    #[must_use]
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    /// Returns the name as it appears in logs, facts and keys.
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

/// Proof of a caller's identity.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Proof {
    /// No proof: a caller on the loopback address while authentication is off.
    Unproved,
    /// The key of a client certificate that a trusted authority has signed.
    Certificate,
    /// A signature inside the message.
    Signature,
    /// An API key of this gateway.
    ApiKey,
    /// A token that a trusted issuer has signed.
    Token,
    /// Ownership of the pipe or the socket of the process.
    LocalUser,
    /// None needed: the caller is the gateway itself.
    Gateway,
}

impl Proof {
    /// All kinds of proof, in declaration order.
    pub const ALL: [Self; 7] =
        [Self::Unproved, Self::Certificate, Self::Signature, Self::ApiKey, Self::Token, Self::LocalUser, Self::Gateway];

    /// Returns the word for this proof in facts and on tapes.
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

/// Identity of a caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Principal on whose behalf it calls.
    pub principal: Principal,
    /// Proof of the principal.
    pub proof: Proof,
    /// Further claims of the proof as (name, value), such as the subject of a certificate.
    pub claims: Vec<(Box<str>, Box<str>)>,
    /// Address of the caller, if known.
    pub address: Option<SocketAddr>,
    /// Transport: `http`, `sse`, `websocket`, `stdio`, `tcp`, `control`; empty for the gateway itself.
    pub transport: &'static str,
    /// Roles, scopes and trust of the caller; `None` if no users are configured.
    pub standing: Option<Arc<Standing>>,
}

impl Identity {
    /// Returns true if two identities of one principal have the same rights at this gateway. The lifetime of their
    /// credentials is ignored: a refreshed token is as good as the one before it.
    #[must_use]
    pub fn has_rights_of(&self, other: &Self) -> bool {
        self.rights() == other.rights()
    }

    /// Returns the rights of the identity, without its principal.
    #[must_use]
    pub fn rights(&self) -> Rights<'_> {
        let standing = self.standing.as_deref().map(|standing| StandingRights {
            trust: standing.trust,
            roles: &standing.roles,
            groups: &standing.groups,
            scopes: standing.scopes.as_deref(),
            resources: &standing.resources,
        });
        Rights { proof: self.proof, standing }
    }

    /// Returns the trust level. Without a standing, it depends on the proof alone.
    #[must_use]
    pub fn trust(&self) -> TrustLevel {
        match (&self.standing, self.proof) {
            (Some(standing), _) => standing.trust,
            (None, Proof::LocalUser | Proof::Gateway) => TrustLevel::System,
            (None, Proof::Unproved) => TrustLevel::Untrusted,
            (None, _) => TrustLevel::Verified,
        }
    }

    /// Returns true if the identity has this role.
    #[must_use]
    pub fn has_role(&self, role: &str) -> bool {
        self.standing.as_ref().is_some_and(|standing| standing.has_role(role))
    }
}

/// Rights of an identity at this gateway. What one credential of a principal caused is for other credentials with
/// equal rights only.
#[derive(PartialEq, Eq, Debug)]
pub struct Rights<'a> {
    proof: Proof,
    standing: Option<StandingRights<'a>>,
}

/// The part of a standing that grants rights.
#[derive(PartialEq, Eq, Debug)]
struct StandingRights<'a> {
    trust: TrustLevel,
    roles: &'a [Box<str>],
    groups: &'a [Box<str>],
    scopes: Option<&'a [Box<str>]>,
    resources: &'a [Box<str>],
}

impl Rights<'_> {
    /// Returns a text that is equal for equal rights only, on every gateway.
    #[must_use]
    pub fn to_text(&self) -> String {
        let Self { proof, standing } = self;
        let standing = standing.as_ref().map(|standing| {
            let StandingRights { trust, roles, groups, scopes, resources } = standing;
            serde_json::json!([trust.word(), roles, groups, scopes, resources])
        });
        serde_json::json!([proof.word(), standing]).to_string()
    }
}

/// Caller of a request. Copies share one identity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller(Arc<Identity>);

impl Caller {
    /// Creates a caller with this identity.
    #[must_use]
    pub fn new(identity: Identity) -> Self {
        Self(Arc::new(identity))
    }

    /// Creates a caller with no claims, address or transport.
    #[must_use]
    pub fn of(principal: Principal, proof: Proof, transport: &'static str) -> Self {
        Self::new(Identity { principal, proof, claims: Vec::new(), address: None, transport, standing: None })
    }

    /// Creates a loopback caller that has proved nothing.
    #[must_use]
    pub fn anonymous(transport: &'static str) -> Self {
        Self::of(Principal::anonymous(), Proof::Unproved, transport)
    }

    /// Creates the caller for the user who owns the pipe.
    #[must_use]
    pub fn local(user: &str, transport: &'static str) -> Self {
        Self::of(Principal::local(user), Proof::LocalUser, transport)
    }

    /// Creates the gateway itself as a caller, for its own traffic on connections opened for `principal`.
    #[must_use]
    pub fn gateway(principal: Principal) -> Self {
        Self::of(principal, Proof::Gateway, "")
    }

    /// Returns the principal on whose behalf it calls.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.0.principal
    }

    /// Returns the whole identity.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.0
    }

    /// Returns its token, if a backend is reached with tokens obtained in exchange for it.
    #[must_use]
    pub fn subject_token(&self) -> Option<&SubjectToken> {
        self.0.standing.as_ref()?.credential.as_ref()?.token.as_ref()
    }

    /// Returns the reason why its credential is not valid at this time, in milliseconds since 1970; `None` if it is
    /// valid or cannot expire.
    #[must_use]
    pub fn credential_fault(&self, now: u64) -> Option<&'static str> {
        self.0.standing.as_ref()?.credential.as_ref()?.fault(now)
    }

    /// Returns true if its credential can expire or be revoked.
    #[must_use]
    pub fn can_end(&self) -> bool {
        self.0.standing.as_ref().is_some_and(|standing| standing.credential.is_some())
    }

    /// Returns true if its standing still holds at this time, in milliseconds since 1970.
    #[must_use]
    pub fn is_current(&self, now: u64) -> bool {
        let credential = self.0.standing.as_ref().and_then(|standing| standing.credential.as_ref());
        credential.is_none_or(|credential| credential.is_current(now))
    }

    /// Returns true if both share one identity object, which is quicker to check than equality.
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
