//! The port by which a caller proves who it is: asked for every request before its body is read, and once more for proofs that
//! a message itself carries, after the strict scan.

use crate::caller::{Caller, Identity, Proof};
use crate::fault::{Fault, FaultKind};
use crate::principal::Principal;
use core::net::SocketAddr;
use signalbox_wire::Envelope;
use std::sync::Arc;

/// What is known of a request before its body is read.
#[derive(Copy, Clone)]
pub struct Arrival<'a> {
    /// How it came: `http`, `sse`, `websocket`, `stdio`, `tcp`, `control`.
    pub transport: &'static str,
    /// From where.
    pub address: Option<SocketAddr>,
    /// Whose certificate was shown, by its SHA-256, signed by an authority that is trusted.
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

    /// Who calls, by this proof; nothing where there is no such proof.
    ///
    /// # Errors
    /// Where there is one, and it does not hold.
    fn identify(&self, arrival: &Arrival<'_>) -> Result<Option<Identity>, Fault>;

    /// Who calls, by a proof that the message itself carries; nothing where it carries none.
    ///
    /// # Errors
    /// Where it carries one, and it does not hold.
    fn confirm(&self, _caller: &Caller, _message: &Envelope) -> Result<Option<Caller>, Fault> {
        Ok(None)
    }

    /// True where messages themselves may carry a proof, so that [`Authenticator::confirm`] is asked about each.
    fn reads_messages(&self) -> bool {
        false
    }

    /// True where requests of one connection may prove different things, so that each of them is asked about.
    fn is_per_request(&self) -> bool {
        false
    }
}

/// All ways of proving it, asked in this order; the first that finds its proof has the last word.
#[derive(Clone)]
pub struct Authenticators {
    list: Arc<[Arc<dyn Authenticator>]>,
    per_request: bool,
    read_messages: bool,
}

impl Authenticators {
    /// These, in this order.
    #[must_use]
    pub fn new(list: Vec<Arc<dyn Authenticator>>) -> Self {
        let per_request = list.iter().any(|one| one.is_per_request());
        let read_messages = list.iter().any(|one| one.reads_messages());
        Self { list: list.into(), per_request, read_messages }
    }

    /// Certificates and the owners of pipes; anybody else is `principal`, unproved.
    #[must_use]
    pub fn open(principal: Principal) -> Self {
        Self::new(vec![Arc::new(ByCertificate), Arc::new(LocalUser), Arc::new(Unproved(principal))])
    }

    /// Who calls.
    ///
    /// # Errors
    /// Where a proof does not hold, or none was given.
    pub fn identify(&self, arrival: &Arrival<'_>) -> Result<Caller, Fault> {
        for one in self.list.iter() {
            if let Some(identity) = one.identify(arrival)? {
                return Ok(Caller::new(identity));
            }
        }
        Err(Fault::new(FaultKind::Refused, "nothing proves who calls"))
    }

    /// Who calls, once the message is there.
    ///
    /// # Errors
    /// Where a proof that the message carries does not hold.
    pub fn confirm(&self, caller: &Caller, message: &Envelope) -> Result<Option<Caller>, Fault> {
        for one in self.list.iter() {
            if let Some(caller) = one.confirm(caller, message)? {
                return Ok(Some(caller));
            }
        }
        Ok(None)
    }

    /// True where any of them reads messages.
    #[must_use]
    pub fn read_messages(&self) -> bool {
        self.read_messages
    }

    /// True where each request is to be asked about, and not its connection alone.
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

/// By the key of a client certificate.
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

/// By owning the pipe or the socket.
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
