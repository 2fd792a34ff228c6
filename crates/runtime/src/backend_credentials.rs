//! The port through which links ask for the credential that goes with a request to a protected backend.
//!
//! A link asks before each request (or handshake) on whose behalf it goes, adds the header that it gets, and reports
//! a refusal with what the backend said about it. The port then gives another credential, with which the request is
//! sent again, or a fault that says what the caller has to do. What the caller itself sent as a credential never
//! goes to a backend.

use crate::link::BoxFuture;
use http::header::{HeaderName, HeaderValue};
use signalbox_engine::{BackendUser, Caller, Fault, Principal};
use std::fmt;

/// How often one request is sent with another credential because the last one was refused.
pub const MAX_CREDENTIAL_TRIES: u32 = 3;

/// A header that proves to a backend who asks.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// The header.
    pub name: HeaderName,
    /// Its value, a secret.
    pub value: HeaderValue,
}

impl Credential {
    /// A header whose value is not to be shown.
    #[must_use]
    pub fn new(name: HeaderName, mut value: HeaderValue) -> Self {
        value.set_sensitive(true);
        Self { name, value }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A backend answered a request with 401 or 403.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The status.
    pub status: u16,
    /// The values of `WWW-Authenticate`, in their order.
    pub challenges: Vec<String>,
    /// The credential that the request had, if any.
    pub used: Option<Credential>,
}

/// The sender of a request to a backend.
#[derive(Clone, Debug, Default)]
pub enum Asker {
    /// The gateway, on behalf of the user of the connection. Also where the credential does not depend on the caller.
    #[default]
    Gateway,
    /// The caller of this very request.
    Caller(Caller),
    /// A caller whose request is over, so that its credential is no longer known.
    Gone,
}

/// The user and the sender of a request to a backend.
#[derive(Clone, Debug, Default)]
pub struct Behalf {
    /// The user of the connection, if that is known.
    pub user: Option<BackendUser>,
    /// The sender.
    pub asker: Asker,
}

impl From<Option<Principal>> for Behalf {
    fn from(principal: Option<Principal>) -> Self {
        Self { user: principal.map(BackendUser::from), asker: Asker::Gateway }
    }
}

impl Behalf {
    /// The principal of the connection, if that is known.
    #[must_use]
    pub fn principal(&self) -> Option<&Principal> {
        self.user.as_ref().map(BackendUser::principal)
    }
}

/// Gives the credentials for one backend.
pub trait BackendCredentials: Send + Sync {
    /// True if principals have credentials of their own, so that the backend may show each of them something else.
    fn is_per_user(&self) -> bool {
        false
    }

    /// True if a credential depends on the token of the caller, and not on its principal alone.
    fn is_per_caller(&self) -> bool {
        false
    }

    /// The credential for a request. `None` if the request is to be tried without one.
    ///
    /// # Errors
    /// Why there is none, and what to do about it.
    fn current(&self, whose: Behalf) -> BoxFuture<Result<Option<Credential>, Fault>>;

    /// Waits for the end of a sign-in of this user that is open in a browser; with `agreed` also for one that is
    /// offered and not opened yet. `None` if there is none. The wait is bounded.
    fn sign_in_end(&self, _user: &BackendUser, _agreed: bool) -> Option<BoxFuture<()>> {
        None
    }

    /// Another credential, after the last one was refused. `None` if the refusal has nothing to do with the credential,
    /// so that the caller gets the backend's answer.
    ///
    /// # Errors
    /// Why there is none, and what to do about it.
    fn renewed(&self, whose: Behalf, refusal: Refusal) -> BoxFuture<Result<Option<Credential>, Fault>>;
}
