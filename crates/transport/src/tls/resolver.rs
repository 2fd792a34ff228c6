//! Which certificate a client gets.

use rustls::client::verify_server_name;
use rustls::pki_types::ServerName;
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::sync::Arc;

/// The first certificate that is good for the name a client asks for, and the first of all where none is.
#[derive(Debug)]
pub(super) struct ByName(pub Vec<Arc<CertifiedKey>>);

impl ByName {
    fn named(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let name = ServerName::try_from(name).ok()?;
        let fits = |one: &&Arc<CertifiedKey>| {
            let parsed = one.end_entity_cert().and_then(ParsedCertificate::try_from);
            parsed.is_ok_and(|parsed| verify_server_name(&parsed, &name).is_ok())
        };
        self.0.iter().find(fits).cloned()
    }
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let only = self.0.len() == 1;
        let named = hello.server_name().filter(|_| !only).and_then(|name| self.named(name));
        named.or_else(|| self.0.first().cloned())
    }
}
