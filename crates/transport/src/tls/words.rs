//! Describes handshake errors in plain words.

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, PeerIncompatible};
use signalbox_wire::timestamp;
use std::error::Error as StdError;
use std::io;

/// Finds the TLS error in a chain of causes.
pub(crate) fn find<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<Error>() {
            return Some(found);
        }
        // An `io::Error` does not report the error it wraps as its source.
        let held = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match held {
            Some(held) => Some(held as &(dyn StdError + 'static)),
            None => error.source(),
        };
    }
    None
}

/// Returns the reason for the metrics, from a closed set.
pub(super) fn reason(error: &Error) -> &'static str {
    match error {
        Error::InvalidCertificate(_) | Error::NoCertificatesPresented => "client_certificate",
        Error::PeerIncompatible(_) => "incompatible",
        Error::NoApplicationProtocol => "no_http",
        Error::AlertReceived(_) => "refused_by_client",
        Error::InvalidMessage(_) | Error::PeerMisbehaved(_) => "malformed",
        _ => "other",
    }
}

/// Describes an error for the user. The text continues after a colon.
pub(crate) fn words(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(error) => certificate(error),
        Error::NoCertificatesPresented => "no certificate was shown".to_owned(),
        Error::AlertReceived(alert) => describe_alert(*alert),
        Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13) => {
            "the other side speaks only versions of TLS before 1.2".to_owned()
        }
        Error::PeerIncompatible(PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig) => {
            "the other side speaks only an older version of TLS than `tls.min_version`".to_owned()
        }
        Error::PeerIncompatible(why) => format!("the other side speaks TLS in a way that is not spoken here ({why:?})"),
        Error::InvalidMessage(InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion) => {
            "the other side does not speak TLS there".to_owned()
        }
        other => other.to_string(),
    }
}

fn certificate(error: &CertificateError) -> String {
    let seconds =
        |time: &rustls::pki_types::UnixTime| timestamp::readable(i64::try_from(time.as_secs()).unwrap_or(i64::MAX));
    match error {
        CertificateError::Expired => "the certificate has expired".to_owned(),
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("the certificate has expired at {}", seconds(not_after))
        }
        CertificateError::NotValidYet => "the certificate is not valid yet".to_owned(),
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("the certificate is not valid before {}", seconds(not_before))
        }
        CertificateError::UnknownIssuer => {
            "the certificate is signed by an unknown authority; name it by `tls.ca_file`".to_owned()
        }
        CertificateError::NotValidForName => "the certificate is for another host".to_owned(),
        CertificateError::NotValidForNameContext { expected, presented } => {
            let expected = expected.to_str();
            format!("the certificate is for another host: not for {expected}, but for {}", names(presented))
        }
        CertificateError::BadSignature => {
            "the certificate has a wrong signature; perhaps another authority of the same name has signed it".to_owned()
        }
        CertificateError::Revoked => "the certificate was revoked".to_owned(),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "the certificate was made for another purpose".to_owned()
        }
        CertificateError::BadEncoding => "the certificate cannot be read".to_owned(),
        other => format!("the certificate cannot be used ({other})"),
    }
}

/// Joins the first few names of a certificate. The peer chose them, so they are sanitised.
fn names(presented: &[String]) -> String {
    const SHOWN: usize = 3;
    const LONGEST: usize = 80;
    if presented.is_empty() {
        return "none".to_owned();
    }
    let clean = |name: &String| name.chars().filter(|c| c.is_ascii_graphic()).take(LONGEST).collect::<String>();
    let mut shown: Vec<String> = presented.iter().take(SHOWN).map(clean).collect();
    if presented.len() > SHOWN {
        shown.push("others".to_owned());
    }
    shown.join(", ")
}

fn describe_alert(alert: AlertDescription) -> String {
    let words = match alert {
        AlertDescription::CertificateRequired => {
            "the other side wants a certificate; set `tls.cert_file` and `tls.key_file`"
        }
        AlertDescription::UnknownCA => "the other side does not know who signed our certificate",
        AlertDescription::BadCertificate | AlertDescription::CertificateUnknown => {
            "the other side does not accept our certificate"
        }
        AlertDescription::UnsupportedCertificate => "the other side cannot use our kind of certificate",
        AlertDescription::CertificateExpired => "the other side says that our certificate has expired",
        AlertDescription::CertificateRevoked => "the other side says that our certificate was revoked",
        AlertDescription::AccessDenied => "the other side does not let our certificate in",
        AlertDescription::ProtocolVersion => "the other side speaks no version of TLS that is spoken here",
        AlertDescription::HandshakeFailure | AlertDescription::InsufficientSecurity => {
            "the other side finds no cipher in common, or wants a certificate"
        }
        AlertDescription::UnrecognisedName => "the other side does not know this host name; see `tls.server_name`",
        AlertDescription::NoApplicationProtocol => "the other side does not speak HTTP/1.1 there",
        other => return format!("the other side refused the TLS connection ({other:?})"),
    };
    words.to_owned()
}
