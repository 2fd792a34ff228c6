//! Authenticates callers by client certificate. Configured rules map certificates to principals.

use crate::directory::{Directory, DirectoryClaims};
use crate::subject_pattern::SubjectPattern;
use arc_swap::ArcSwap;
use signalbox_engine::Proof;
use signalbox_engine::authenticator::{Arrival, Authenticator, ShownCertificate};
use signalbox_engine::caller::Identity;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::standing::{Credential, Revocation};
use signalbox_engine::{Fault, Principal};
use signalbox_wire::glob::{Wildcards, fits};
use std::sync::{Arc, Mutex};

/// Rule that maps certificates to a principal.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CertificateRule {
    /// SHA-256 of the certificate, in hexadecimal without colons.
    pub fingerprint: Option<String>,
    /// Pattern for an alternative name, such as `uri:spiffe://example/*`.
    pub name: Option<String>,
    /// Pattern for the whole subject.
    pub subject: Option<SubjectPattern>,
    /// Principal of the holder.
    pub principal: String,
    pub roles: Vec<String>,
}

impl CertificateRule {
    /// Returns true if every pattern of the rule matches.
    #[must_use]
    pub fn is_meant(&self, shown: &ShownCertificate) -> bool {
        let has_name =
            |pattern: &String| shown.names.iter().any(|name| fits(pattern, name, Wildcards::StarAndQuestion));
        let fingerprint = shown.principal.as_str().strip_prefix("cert:").unwrap_or_default();
        self.fingerprint.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(fingerprint))
            && self.name.as_ref().is_none_or(has_name)
            && self.subject.as_ref().is_none_or(|pattern| pattern.is_met(&shown.subject))
    }
}

/// Authenticator for client certificates. The first matching rule names the principal; without one, the fingerprint
/// does.
#[derive(Debug)]
pub struct CertificateAuthenticator {
    rules: Vec<CertificateRule>,
    directory: Arc<ArcSwap<Directory>>,
    /// Parent of every credential issued for the current directory. Its revocation outdates the standings derived from
    /// it.
    issued: Mutex<(Credential, Revocation)>,
}

impl CertificateAuthenticator {
    /// Creates an authenticator with these rules.
    #[must_use]
    pub fn new(rules: Vec<CertificateRule>, directory: Arc<ArcSwap<Directory>>) -> Self {
        Self { rules, directory, issued: Mutex::new(Credential::new("certificates", None)) }
    }

    /// Outdates all standings after a change of the directory. Each holder is identified anew at its next request.
    pub fn forget_standings(&self) {
        let mut issued = self.issued.lock().unpoisoned();
        issued.1.outdate();
        *issued = Credential::new("certificates", None);
    }
}

impl Authenticator for CertificateAuthenticator {
    fn name(&self) -> &'static str {
        "certificate"
    }

    fn identify(&self, arrival: &Arrival<'_>) -> Result<Option<Identity>, Fault> {
        let Some(shown) = arrival.certificate() else { return Ok(None) };
        shown.check_time(arrival.now)?;
        // Taken before the directory is read, so that a standing made of an old directory is outdated with it.
        let credential = self.issued.lock().unpoisoned().0.beside(shown.principal.as_str(), shown.expires);
        let rule = self.rules.iter().find(|rule| rule.is_meant(shown));
        let principal = rule.map_or_else(|| shown.principal.clone(), |rule| Principal::named(&rule.principal));
        let said = DirectoryClaims {
            roles: rule.map(|rule| rule.roles.clone()).unwrap_or_default(),
            ..DirectoryClaims::default()
        };
        let standing = self.directory.load().standing(principal.as_str(), said, Some(credential));
        Ok(Some(Identity {
            principal,
            proof: Proof::Certificate,
            claims: vec![("subject".into(), shown.subject.to_string().into())],
            address: arrival.address,
            transport: arrival.transport,
            standing: Some(standing),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::authenticator::ConnectionProof;
    use signalbox_engine::distinguished_name::{DistinguishedName, NameAttribute};

    fn one((kind, value): (&str, &str)) -> Vec<NameAttribute> {
        vec![NameAttribute { kind: kind.into(), value: Some(value.into()) }]
    }

    fn identify(rules: Vec<CertificateRule>) -> Identity {
        let certificate = ShownCertificate {
            principal: Principal::certificate("ab12"),
            subject: DistinguishedName([("CN", "ada"), ("O", "Example")].map(one).into()),
            names: vec!["dns:box.example".into(), "uri:spiffe://example/ada".into()],
            expires: Some(1_000),
        };
        let shown = ConnectionProof::Certificate(certificate);
        let arrival = Arrival { transport: "http", address: None, shown: Some(&shown), header: &|_| None, now: 0 };
        CertificateAuthenticator::new(rules, Arc::default()).identify(&arrival).unwrap().unwrap()
    }

    #[test]
    fn the_first_rule_whose_patterns_all_fit_names_the_holder() {
        let rule =
            |name: Option<&str>, subject: Option<&str>, fingerprint: Option<&str>, principal: &str| CertificateRule {
                fingerprint: fingerprint.map(str::to_owned),
                name: name.map(str::to_owned),
                subject: subject.map(|subject| SubjectPattern::parse(subject).unwrap()),
                principal: principal.to_owned(),
                roles: vec!["ops".to_owned()],
            };
        assert_eq!(identify(Vec::new()).principal.as_str(), "cert:ab12");
        let by = |rule| identify(vec![rule]).principal.as_str().to_owned();
        assert_eq!(by(rule(Some("uri:spiffe://example/*"), None, None, "ada")), "ada");
        assert_eq!(by(rule(None, Some("CN=ada,*"), None, "ada")), "ada");
        assert_eq!(by(rule(None, None, Some("AB12"), "ada")), "ada");
        assert_eq!(by(rule(Some("uri:spiffe://example/*"), Some("CN=bob,*"), None, "bob")), "cert:ab12");
        let two = vec![rule(None, None, Some("ff"), "no"), rule(None, None, Some("ab12"), "yes")];
        let ada = identify(two);
        assert!(ada.principal.as_str() == "yes" && ada.has_role("ops"));
        let credential = ada.standing.as_ref().and_then(|standing| standing.credential.as_ref()).unwrap();
        assert_eq!((credential.fault(999), credential.fault(1_000)), (None, Some("expired")));
    }
}
