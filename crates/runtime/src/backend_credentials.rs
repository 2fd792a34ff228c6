//! Port through which links get the credential for a request to a protected backend.
//!
//! A link asks before each request (or handshake), with the user and sender of the request, adds the returned header,
//! and reports a refusal together with the backend's challenge. The port then returns another credential, with which
//! the request is resent, or a fault that says what the caller has to do. A credential sent by the caller itself never
//! reaches a backend.

use crate::link::BoxFuture;
use http::header::{HeaderName, HeaderValue};
use signalbox_engine::{BackendUser, Caller, Fault, Principal};
use std::fmt;

/// Maximum number of times that a request is resent with another credential after a refusal.
pub const MAX_CREDENTIAL_TRIES: u32 = 3;

/// Header that authenticates a request at a backend.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthHeader {
    pub name: HeaderName,
    /// Header value, which is secret.
    pub value: HeaderValue,
}

impl AuthHeader {
    /// Creates a credential whose value is not shown in logs.
    #[must_use]
    pub fn new(name: HeaderName, mut value: HeaderValue) -> Self {
        value.set_sensitive(true);
        Self { name, value }
    }
}

impl fmt::Debug for AuthHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Response of a backend that refuses a credential, with status 401 or 403.
#[derive(Clone, Debug)]
pub struct AuthRefusal {
    pub status: u16,
    /// Values of `WWW-Authenticate`, in order.
    pub challenges: Vec<String>,
    /// Credential that the request carried, if any.
    pub used: Option<AuthHeader>,
}

/// Sender of a request to a backend.
#[derive(Clone, Debug, Default)]
pub enum RequestSender {
    /// The gateway, on behalf of the user of the connection. Also used if the credential does not depend on the caller.
    #[default]
    Gateway,
    /// The caller of this request.
    Caller(Caller),
    /// A caller whose request is over, so that its credential is no longer known.
    Gone,
}

/// User and sender of a request to a backend.
#[derive(Clone, Debug, Default)]
pub struct RequestIdentity {
    /// User of the connection, if known.
    pub user: Option<BackendUser>,
    /// Sender of the request.
    pub asker: RequestSender,
}

impl From<Option<Principal>> for RequestIdentity {
    fn from(principal: Option<Principal>) -> Self {
        Self { user: principal.map(BackendUser::from), asker: RequestSender::Gateway }
    }
}

impl RequestIdentity {
    /// Returns the principal of the connection, if known.
    #[must_use]
    pub fn principal(&self) -> Option<&Principal> {
        self.user.as_ref().map(BackendUser::principal)
    }
}

/// Source of the credentials for one backend.
pub trait BackendCredentials: Send + Sync {
    /// Returns true if principals have credentials of their own, so that the backend may show each of them something
    /// different.
    fn is_per_user(&self) -> bool {
        false
    }

    /// Returns true if each principal has a credential that no other principal uses, so that the backend tells their
    /// tasks apart.
    fn is_own(&self) -> bool {
        false
    }

    /// Returns true if a credential depends on the token of the caller, and not on its principal alone.
    fn is_per_caller(&self) -> bool {
        false
    }

    /// Returns the credential for a request. `None` if the request is to be tried without one.
    ///
    /// # Errors
    /// A fault that says why there is none, and what the caller has to do.
    fn current(&self, whose: RequestIdentity) -> BoxFuture<Result<Option<AuthHeader>, Fault>>;

    /// Waits for the end of a sign-in of this user that is open in a browser, or, if `agreed`, that is offered but not
    /// opened yet. Returns `None` if there is none. The wait is bounded.
    fn sign_in_end(&self, _user: &BackendUser, _agreed: bool) -> Option<BoxFuture<()>> {
        None
    }

    /// Returns another credential after a refusal. `None` if the refusal is not about the credential, so that the
    /// caller gets the backend's answer.
    ///
    /// # Errors
    /// A fault that says why there is none, and what the caller has to do.
    fn renewed(&self, whose: RequestIdentity, refusal: AuthRefusal) -> BoxFuture<Result<Option<AuthHeader>, Fault>>;
}
