//! TLS both ways: what clients meet at a front, and what backends are met with.
//!
//! Certificates and keys come from files and are read again when these change. A handshake runs on the thread of its
//! connection. Where no TLS is configured nothing of this is on the way of a byte but one match.

mod back;
pub(crate) mod der;
mod file;
mod front;
mod handshake;
mod inspect;
mod pair;
mod self_signed;
mod shown;
mod stream;
#[cfg(test)]
mod tests;
mod words;

pub use back::{BackTls, BackTlsSpec};
pub use file::{FileError, FileProblem, examine, is_exposed};
pub use front::{ClientAuth, FrontTls, FrontTlsSpec, ReadAgain, TlsError, TlsStatus};
pub use inspect::{CertificateInfo, InspectError, SOON, Validity, inspect};
pub use pair::PairFiles;
pub use self_signed::{SelfSigned, SelfSignedError};

pub(crate) use back::BackTlsError;
pub(crate) use handshake::{Arrived, last_words};
pub(crate) use stream::MaybeTlsStream;
pub(crate) use words::{find, words};

use rustls::SupportedProtocolVersion;
use rustls::crypto::CryptoProvider;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How often it is looked whether files have changed.
pub const LOOK: Duration = Duration::from_secs(2);

/// The oldest version of TLS that is spoken.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum MinVersion {
    /// TLS 1.2.
    #[default]
    V1_2,
    /// TLS 1.3.
    V1_3,
}

impl MinVersion {
    fn versions(self) -> &'static [&'static SupportedProtocolVersion] {
        static BOTH: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS13, &rustls::version::TLS12];
        match self {
            Self::V1_2 => &BOTH,
            Self::V1_3 => &BOTH[..1],
        }
    }
}

/// The one source of cryptography.
fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    Arc::clone(PROVIDER.get_or_init(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider())))
}
