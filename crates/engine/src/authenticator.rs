//! How a caller proves who it is. Authenticators are asked about every request before its body is read. Proofs that the
//! message itself carries are looked at later ([`crate::message_proof`]).

use crate::caller::Principal;
use crate::caller::{Caller, Identity, Proof};
use crate::fault::{Fault, FaultKind};
use core::net::SocketAddr;
use std::sync::Arc;

/// What is known of a request before its body is read.
#[derive(Copy, Clone)]
pub struct Arrival<'a> {
    /// The transport: `http`, `sse`, `websocket`, `stdio`, `tcp`, `control`.
    pub transport: &'static str,
    /// The address of the other end.
    pub address: Option<SocketAddr>,
    /// The holder of the client certificate, by its SHA-256; only set if a trusted authority signed it.
    pub certificate: Option<&'a Principal>,
    /// Who owns the other end of the pipe or socket.
    pub user: Option<&'a Principal>,
    /// A header of the request, by its name in lower case; a pipe has none.
    pub header: &'a dyn Fn(&str) -> Option<&'a [u8]>,
}

/// One way of proving who calls.
pub trait Authenticator: Send + Sync {
    /// Its name in logs.
    fn name(&self) -> &'static str;

    /// Who calls, by this proof; `None` if there is no such proof.
    ///
    /// # Errors
    /// If there is a proof but it is not valid.
    fn identify(&self, arrival: &Arrival<'_>) -> Result<Option<Identity>, Fault>;

    /// True if requests of one connection may come from different callers, so that each request must be asked about.
    fn is_per_request(&self) -> bool {
        false
    }
}

/// The authenticators in order. The first one that finds its proof decides.
#[derive(Clone)]
pub struct Authenticators {
    list: Arc<[Arc<dyn Authenticator>]>,
    per_request: bool,
}

impl Authenticators {
    /// Authenticators that are asked in this order.
    #[must_use]
    pub fn new(list: Vec<Arc<dyn Authenticator>>) -> Self {
        let per_request = list.iter().any(|one| one.is_per_request());
        Self { list: list.into(), per_request }
    }

    /// Client certificates and owners of pipes; any other caller is taken for `principal`, unproved.
    #[must_use]
    pub fn open(principal: Principal) -> Self {
        Self::new(vec![Arc::new(ByCertificate), Arc::new(LocalUser), Arc::new(Unproved(principal))])
    }

    /// Who calls.
    ///
    /// # Errors
    /// If a proof is not valid, or none was given.
    pub fn identify(&self, arrival: &Arrival<'_>) -> Result<Caller, Fault> {
        for one in self.list.iter() {
            if let Some(identity) = one.identify(arrival)? {
                return Ok(Caller::new(identity));
            }
        }
        Err(Fault::new(FaultKind::Refused, "the caller did not prove its identity"))
    }

    /// True if callers must be identified per request and not per connection.
    #[must_use]
    pub fn is_per_request(&self) -> bool {
        self.per_request
    }
}

impl std::fmt::Debug for Authenticators {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.list.iter().map(|one| one.name())).finish()
    }
}

/// Identifies callers by their client certificate.
#[derive(Copy, Clone, Debug)]
pub struct ByCertificate;

impl Authenticator for ByCertificate {
    fn name(&self) -> &'static str {
        "certificate"
    }

    fn identify(&self, arrival: &Arrival<'_>) -> Result<Option<Identity>, Fault> {
        Ok(arrival.certificate.map(|principal| identity(principal, Proof::Certificate, arrival)))
    }
}

/// Identifies callers by the owner of the pipe or socket.
#[derive(Copy, Clone, Debug)]
pub struct LocalUser;

impl Authenticator for LocalUser {
    fn name(&self) -> &'static str {
        "local_user"
    }

    fn identify(&self, arrival: &Arrival<'_>) -> Result<Option<Identity>, Fault> {
        Ok(arrival.user.map(|principal| identity(principal, Proof::LocalUser, arrival)))
    }
}

/// Takes everybody for this principal. Only for listeners that nobody but the machine's own users can reach.
#[derive(Clone, Debug)]
pub struct Unproved(pub Principal);

impl Authenticator for Unproved {
    fn name(&self) -> &'static str {
        "none"
    }

    fn identify(&self, arrival: &Arrival<'_>) -> Result<Option<Identity>, Fault> {
        Ok(Some(identity(&self.0, Proof::Unproved, arrival)))
    }
}

fn identity(principal: &Principal, proof: Proof, arrival: &Arrival<'_>) -> Identity {
    let (address, transport) = (arrival.address, arrival.transport);
    Identity { principal: principal.clone(), proof, claims: Vec::new(), address, transport }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival<'a>(certificate: Option<&'a Principal>, user: Option<&'a Principal>) -> Arrival<'a> {
        Arrival { transport: "http", address: None, certificate, user, header: &|_| None }
    }

    #[test]
    fn the_first_proof_that_is_there_has_the_last_word() {
        let all = Authenticators::open(Principal::anonymous());
        let (cert, user) = (Principal::certificate("ab"), Principal::local("ann"));
        let who = |arrival: &Arrival<'_>| {
            let caller = all.identify(arrival).unwrap();
            (caller.principal().to_string(), caller.identity().proof)
        };
        assert_eq!(who(&arrival(Some(&cert), Some(&user))), ("cert:ab".to_owned(), Proof::Certificate));
        assert_eq!(who(&arrival(None, Some(&user))), ("local:ann".to_owned(), Proof::LocalUser));
        assert_eq!(who(&arrival(None, None)), ("anonymous".to_owned(), Proof::Unproved));
    }

    #[test]
    fn there_is_no_default_identity() {
        let strict = Authenticators::new(vec![Arc::new(ByCertificate)]);
        assert_eq!(strict.identify(&arrival(None, None)).unwrap_err().kind, FaultKind::Refused);
    }
}
