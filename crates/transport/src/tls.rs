//! TLS for connections from clients and to backends.
//!
//! Certificates and keys come from files, which are read again when they change. A handshake runs on the thread of its
//! connection. Without TLS, the only cost per read or write is one match.

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
pub use file::{FileProblem, TlsFileError, examine, is_exposed};
pub use front::{ClientCertPolicy, FrontTls, FrontTlsSpec, ReadAgain, TlsError, TlsStatus};
pub use inspect::{CertificateInfo, InspectError, SOON, Validity, inspect};
pub use pair::PairFiles;
pub use self_signed::{GeneratedCertificate, SelfSignedError};

pub(crate) use back::BackTlsError;
pub(crate) use handshake::{HandshakeOutcome, last_words};
pub(crate) use stream::MaybeTlsStream;
pub(crate) use words::{find, words};

use rustls::SupportedProtocolVersion;
use rustls::crypto::CryptoProvider;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Interval at which files are checked for changes.
pub const LOOK: Duration = Duration::from_secs(2);

/// Minimum TLS version to negotiate.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum MinVersion {
    /// TLS 1.2 or later.
    #[default]
    V1_2,
    /// TLS 1.3 and nothing older.
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

/// Returns the only cryptography provider of the process.
fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    Arc::clone(PROVIDER.get_or_init(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider())))
}
