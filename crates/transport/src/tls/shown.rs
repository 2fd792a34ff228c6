//! Identity of the holder of a client certificate.

use super::der;
use super::inspect::fingerprint;
use rustls::pki_types::CertificateDer;
use signalbox_engine::Principal;
use signalbox_engine::authenticator::ShownCertificate;
use signalbox_engine::distinguished_name::{DistinguishedName, NameAttribute};
use std::net::IpAddr;
use x509_parser::extensions::GeneralName;
use x509_parser::objects::{oid_registry, oid2abbrev};
use x509_parser::prelude::{AttributeTypeAndValue, FromDer as _, X509Certificate, X509Name};

/// Maximum number of attributes of a subject.
const MAX_SUBJECT: usize = 32;
/// Maximum number of alternative names that are read.
const MAX_NAMES: usize = 100;

/// Extracts the identity from a certificate with a verified chain. A certificate that cannot be parsed further has no
/// names.
pub(super) fn shown_certificate(certificate: &CertificateDer<'_>) -> ShownCertificate {
    let principal = Principal::certificate(&fingerprint(certificate));
    let expires = der::validity(certificate).and_then(|(_, until)| end_of_second(until));
    let Ok((_, read)) = X509Certificate::from_der(certificate) else {
        return ShownCertificate { principal, subject: DistinguishedName::default(), names: Vec::new(), expires };
    };
    let alternative = read.subject_alternative_name().ok().flatten();
    let names = alternative.iter().flat_map(|found| &found.value.general_names).filter_map(name).take(MAX_NAMES);
    ShownCertificate { principal, subject: subject(read.subject()), names: names.collect(), expires }
}

/// Returns the end of validity in milliseconds since 1970. A certificate is valid until the end of its last second (RFC
/// 5280).
fn end_of_second(until: i64) -> Option<u64> {
    u64::try_from(until).ok()?.checked_add(1)?.checked_mul(1_000)
}

/// Converts a subject. One with too many attributes is dropped, because patterns must not match only a part of it.
fn subject(name: &X509Name<'_>) -> DistinguishedName {
    if name.iter_attributes().count() > MAX_SUBJECT {
        return DistinguishedName::default();
    }
    DistinguishedName(name.iter_rdn().map(|name| name.iter().map(attribute).collect()).collect())
}

fn attribute(attribute: &AttributeTypeAndValue<'_>) -> NameAttribute {
    let kind = attribute.attr_type();
    let short = oid2abbrev(kind, oid_registry()).ok();
    let value = attribute.as_str().ok().map(Into::into);
    NameAttribute { kind: short.map_or_else(|| kind.to_id_string().into(), Into::into), value }
}

fn name(name: &GeneralName<'_>) -> Option<Box<str>> {
    match name {
        GeneralName::DNSName(name) => Some(format!("dns:{}", name.to_ascii_lowercase()).into()),
        GeneralName::RFC822Name(address) => Some(format!("email:{address}").into()),
        GeneralName::URI(uri) => Some(format!("uri:{uri}").into()),
        GeneralName::IPAddress(bytes) => {
            let address = match bytes.len() {
                4 => IpAddr::from(<[u8; 4]>::try_from(*bytes).ok()?),
                16 => IpAddr::from(<[u8; 16]>::try_from(*bytes).ok()?),
                _ => return None,
            };
            Some(format!("ip:{address}").into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};

    #[test]
    fn the_names_of_a_certificate_are_read() {
        let mut params = CertificateParams::new(vec!["Box.example".to_owned()]).unwrap();
        params.distinguished_name.remove(DnType::CommonName);
        params.distinguished_name.push(DnType::CommonName, "ada");
        params.subject_alt_names.push(SanType::URI("spiffe://example/ada".try_into().unwrap()));
        params.subject_alt_names.push(SanType::IpAddress("10.0.0.1".parse().unwrap()));
        params.subject_alt_names.push(SanType::Rfc822Name("ada@example.com".try_into().unwrap()));
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let shown = shown_certificate(certificate.der());
        assert_eq!(shown.subject.to_string(), "CN=ada");
        let names: Vec<&str> = shown.names.iter().map(|name| &**name).collect();
        assert_eq!(names, ["dns:box.example", "uri:spiffe://example/ada", "ip:10.0.0.1", "email:ada@example.com"]);
        assert!(shown.principal.as_str().starts_with("cert:"));
        // The library that made it has certificates end with the first second of the year 4096.
        assert_eq!(shown.expires, Some(67_090_118_401_000));
    }

    #[test]
    fn what_cannot_be_read_has_no_names() {
        let shown = shown_certificate(&CertificateDer::from(vec![0x30, 0x80, 1, 2]));
        assert_eq!((shown.subject.to_string().as_str(), shown.names.len()), ("", 0));
    }

    #[test]
    fn a_name_with_commas_is_one_name() {
        let subject = |names: &[(DnType, &str)]| {
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.distinguished_name = DistinguishedName::new();
            names.iter().for_each(|(kind, value)| params.distinguished_name.push(kind.clone(), *value));
            shown_certificate(params.self_signed(&KeyPair::generate().unwrap()).unwrap().der()).subject
        };
        let real = subject(&[(DnType::CommonName, "admin"), (DnType::OrganizationName, "Corp")]);
        let forged = subject(&[(DnType::CommonName, "admin, O=Corp")]);
        assert_eq!((real.0.len(), forged.0.len()), (2, 1));
        assert_eq!(real.to_string(), "CN=admin, O=Corp");
        assert_eq!(forged.to_string(), r"CN=admin\, O\=Corp");
    }
}
