//! Authentication of callers. Authenticators run for every request before its body is read. Proofs inside the message
//! itself are checked later ([`crate::message_proof`]).

use crate::caller::Principal;
use crate::caller::{Caller, Identity, Proof};
use crate::distinguished_name::DistinguishedName;
use crate::fault::{Fault, FaultKind};
use crate::resource_address::RequestAddress;
use core::net::SocketAddr;
use std::sync::Arc;

/// Client certificate that a trusted authority has signed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShownCertificate {
    /// Principal of its holder, named by the SHA-256 of the certificate.
    pub principal: Principal,
    /// Subject of the certificate.
    pub subject: DistinguishedName,
    /// Alternative names, such as `dns:box.example`, `email:ada@example.com`, `uri:spiffe://example/ada`,
    /// `ip:10.0.0.1`.
    pub names: Vec<Box<str>>,
    /// Time of expiry, in milliseconds since 1970; `None` if it cannot be read.
    pub expires: Option<u64>,
}

impl ShownCertificate {
    /// Refuses an expired certificate. A connection may outlive its certificate.
    ///
    /// # Errors
    /// Returns a fault if the certificate has expired at this time, in milliseconds since 1970.
    pub fn check_time(&self, now: u64) -> Result<(), Fault> {
        match self.expires.is_some_and(|expires| expires <= now) {
            true => {
                let fault = Fault::new(FaultKind::Unauthenticated, "the client certificate has expired");
                Err(fault.with_str("error", "invalid_token"))
            }
            false => Ok(()),
        }
    }
}

/// Proof that a connection itself carries, independent of the requests on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConnectionProof {
    /// The client certificate of a TLS connection.
    Certificate(ShownCertificate),
    /// The owner of the other end of the pipe or socket.
    Owner(Principal),
}

/// Properties of a request before its body is read.
#[derive(Copy, Clone)]
pub struct Arrival<'a> {
    /// Transport: `http`, `sse`, `websocket`, `stdio`, `tcp`, `control`.
    pub transport: &'static str,
    /// Address of the other end.
    pub address: Option<SocketAddr>,
    /// Proof that the connection carries.
    pub shown: Option<&'a ConnectionProof>,
    /// Reads a header of the request by its name in lower case; a pipe has none.
    pub header: &'a dyn Fn(&str) -> Option<&'a [u8]>,
    /// Time of arrival, in milliseconds since 1970.
    pub now: u64,
}

impl Arrival<'_> {
    /// Returns the client certificate, if the connection has one.
    #[must_use]
    pub fn certificate(&self) -> Option<&ShownCertificate> {
        match self.shown {
            Some(ConnectionProof::Certificate(certificate)) => Some(certificate),
            _ => None,
        }
    }
}

/// Formats the `WWW-Authenticate` header, which tells clients how to authenticate.
pub trait Challenge: Send + Sync + std::fmt::Debug {
    /// Returns the value for a request to this address. `error` is an OAuth error code, absent if no credential was
    /// given; `scopes` are those that the operation needs.
    fn header(&self, at: RequestAddress<'_>, error: Option<&str>, description: &str, scopes: &[&str]) -> String;
}

/// Method of authentication, such as certificates, API keys or tokens.
pub trait Authenticator: Send + Sync {
    /// Returns the name used in logs.
    fn name(&self) -> &'static str;

    /// Identifies the caller by this kind of proof; `None` if there is no such proof.
    ///
    /// # Errors
    /// Returns a fault if there is a proof but it is not valid.
    fn identify(&self, arrival: &Arrival<'_>) -> Result<Option<Identity>, Fault>;

    /// Returns true if requests of one connection may come from different callers, so that each request must be
    /// authenticated.
    fn is_per_request(&self) -> bool {
        false
    }
}

/// Authenticators in order. The first one that finds its proof decides.
#[derive(Clone)]
pub struct Authenticators {
    list: Arc<[Arc<dyn Authenticator>]>,
    per_request: bool,
}

impl Authenticators {
    /// Creates the list, which runs in this order.
    #[must_use]
    pub fn new(list: Vec<Arc<dyn Authenticator>>) -> Self {
        let per_request = list.iter().any(|one| one.is_per_request());
        Self { list: list.into(), per_request }
    }

    /// Accepts client certificates and owners of pipes. Any other caller counts as `principal`, unproved.
    #[must_use]
    pub fn open(principal: Principal) -> Self {
        Self::new(vec![Arc::new(ByCertificate), Arc::new(OwnerAuthenticator), Arc::new(AssumedPrincipal(principal))])
    }

    /// Identifies the caller of a request.
    ///
    /// # Errors
    /// Returns a fault if a proof is not valid, or none was given.
    pub fn identify(&self, arrival: &Arrival<'_>) -> Result<Caller, Fault> {
        for one in self.list.iter() {
            if let Some(identity) = one.identify(arrival)? {
                return Ok(Caller::new(identity));
            }
        }
        Err(Fault::new(FaultKind::Unauthenticated, "the caller did not prove its identity"))
    }

    /// Returns true if callers must be identified per request and not per connection.
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
        let Some(shown) = arrival.certificate() else { return Ok(None) };
        shown.check_time(arrival.now)?;
        Ok(Some(identity(&shown.principal, Proof::Certificate, arrival)))
    }
}

/// Identifies callers by the owner of the pipe or socket.
#[derive(Copy, Clone, Debug)]
pub struct OwnerAuthenticator;

impl Authenticator for OwnerAuthenticator {
    fn name(&self) -> &'static str {
        "local_user"
    }

    fn identify(&self, arrival: &Arrival<'_>) -> Result<Option<Identity>, Fault> {
        Ok(match arrival.shown {
            Some(ConnectionProof::Owner(principal)) => Some(identity(principal, Proof::LocalUser, arrival)),
            _ => None,
        })
    }
}

/// Identifies every caller as this principal. Only for listeners that are reachable only by users of this machine.
#[derive(Clone, Debug)]
pub struct AssumedPrincipal(pub Principal);

impl Authenticator for AssumedPrincipal {
    fn name(&self) -> &'static str {
        "none"
    }

    fn identify(&self, arrival: &Arrival<'_>) -> Result<Option<Identity>, Fault> {
        Ok(Some(identity(&self.0, Proof::Unproved, arrival)))
    }
}

fn identity(principal: &Principal, proof: Proof, arrival: &Arrival<'_>) -> Identity {
    let (address, transport) = (arrival.address, arrival.transport);
    Identity { principal: principal.clone(), proof, claims: Vec::new(), address, transport, standing: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(shown: Option<&ConnectionProof>) -> Arrival<'_> {
        Arrival { transport: "http", address: None, shown, header: &|_| None, now: 0 }
    }

    #[test]
    fn the_first_proof_that_is_there_has_the_last_word() {
        let all = Authenticators::open(Principal::anonymous());
        let certificate = ShownCertificate {
            principal: Principal::certificate("ab"),
            subject: DistinguishedName::default(),
            names: Vec::new(),
            expires: Some(5),
        };
        let (cert, user) = (ConnectionProof::Certificate(certificate), ConnectionProof::Owner(Principal::local("ann")));
        let who = |arrival: &Arrival<'_>| {
            let caller = all.identify(arrival).unwrap();
            (caller.principal().to_string(), caller.identity().proof)
        };
        assert_eq!(who(&arrival(Some(&cert))), ("cert:ab".to_owned(), Proof::Certificate));
        assert_eq!(who(&arrival(Some(&user))), ("local:ann".to_owned(), Proof::LocalUser));
        assert_eq!(who(&arrival(None)), ("anonymous".to_owned(), Proof::Unproved));
    }

    #[test]
    fn a_certificate_that_has_expired_proves_nobody() {
        let shown = ConnectionProof::Certificate(ShownCertificate {
            principal: Principal::certificate("ab"),
            subject: DistinguishedName::default(),
            names: Vec::new(),
            expires: Some(5),
        });
        let all = Authenticators::open(Principal::anonymous());
        let at = |now| all.identify(&Arrival { now, ..arrival(Some(&shown)) }).map(|caller| caller.identity().proof);
        assert_eq!(at(4), Ok(Proof::Certificate));
        assert_eq!(at(5).unwrap_err().kind, FaultKind::Unauthenticated);
    }

    #[test]
    fn there_is_no_default_identity() {
        let strict = Authenticators::new(vec![Arc::new(ByCertificate)]);
        assert_eq!(strict.identify(&arrival(None)).unwrap_err().kind, FaultKind::Unauthenticated);
    }
}
