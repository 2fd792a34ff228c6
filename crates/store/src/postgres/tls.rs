//! TLS to the database: the connector of the client, and the verification of the server's certificate.

use super::ssl::{Roots, Ssl, TlsMode};
use ::postgres::Socket;
use ::postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::error::Error as StdError;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsConnector;

/// Error of setting up TLS.
#[derive(Debug, thiserror::Error)]
pub enum PgTlsError {
    /// A file cannot be used.
    #[error("{0}: {1}")]
    File(String, String),
    /// The system has no trusted authorities.
    #[error("sslrootcert=system: no certificate authority was found on this system")]
    NoSystemRoots,
    /// The settings are inconsistent.
    #[error("TLS cannot be set up: {0}")]
    Unfit(String),
    /// The host cannot be the name in a certificate.
    #[error("the host cannot be the name of a certificate")]
    Host,
    /// The handshake with the server failed.
    #[error("{0}")]
    Handshake(String),
}

/// Performs TLS handshakes with the configured servers.
#[derive(Clone)]
pub struct PgTlsConnector {
    config: Arc<ClientConfig>,
    trusted: Arc<str>,
}

impl PgTlsConnector {
    /// Reads the configured files.
    pub fn read(ssl: &Ssl) -> Result<Self, PgTlsError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let (verifier, trusted) = Verifier::read(ssl, &provider)?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| PgTlsError::Unfit(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &ssl.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates(certificate)?;
                let private = PrivateKeyDer::from_pem_file(key).map_err(|error| file_error(key, error))?;
                builder.with_client_auth_cert(chain, private).map_err(|error| file_error(key, error))?
            }
        };
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Self { config: Arc::new(config), trusted })
    }
}

fn file_error(file: &Path, why: impl ToString) -> PgTlsError {
    PgTlsError::File(file.display().to_string(), why.to_string())
}

/// Reads the certificates of a file, at least one.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, PgTlsError> {
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(file).and_then(Iterator::collect).map_err(|error| file_error(file, error));
    let found = found?;
    if found.is_empty() {
        Err(file_error(file, "there is no certificate in it (`-----BEGIN CERTIFICATE-----`)"))
    } else {
        Ok(found)
    }
}

/// Verifier of the server's certificate.
#[derive(Debug)]
struct Verifier {
    /// Verifier of the issuing authority; `None` if the certificate is not checked.
    signed: Option<Arc<WebPkiServerVerifier>>,
    /// Certificates that are trusted themselves. A server may present one of them, even if it is an authority's.
    known: Vec<CertificateDer<'static>>,
    /// True if the certificate must match the host.
    named: bool,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    /// Creates the verifier, and a description of what it trusts.
    fn read(ssl: &Ssl, provider: &Arc<CryptoProvider>) -> Result<(Self, Arc<str>), PgTlsError> {
        let provider = Arc::clone(provider);
        let (known, trusted) = match &ssl.roots {
            Some(roots) if matches!(ssl.mode, TlsMode::VerifyCa | TlsMode::VerifyFull) => match roots {
                Roots::File(file) => (certificates(file)?, file.display().to_string()),
                Roots::System => {
                    (rustls_native_certs::load_native_certs().certs, "the system's authorities".to_owned())
                }
            },
            _ => return Ok((Self { signed: None, known: Vec::new(), named: false, provider }, "".into())),
        };
        let mut roots = RootCertStore::empty();
        match &ssl.roots {
            Some(Roots::File(file)) => {
                for certificate in &known {
                    roots.add(certificate.clone()).map_err(|error| file_error(file, error))?;
                }
            }
            _ => {
                roots.add_parsable_certificates(known.iter().cloned());
                if roots.is_empty() {
                    return Err(PgTlsError::NoSystemRoots);
                }
            }
        }
        let signed = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(|error| PgTlsError::Unfit(error.to_string()))?;
        let named = ssl.mode == TlsMode::VerifyFull;
        Ok((Self { signed: Some(signed), known, named, provider }, trusted.into()))
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(signed) = &self.signed else { return Ok(ServerCertVerified::assertion()) };
        match signed.verify_server_cert(shown, between, host, ocsp, now) {
            // The signatures are checked before the name.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.named => Ok(ServerCertVerified::assertion()),
            // A server with a self-signed certificate is trusted if that certificate is.
            Err(Error::InvalidCertificate(CertificateError::Other(_) | CertificateError::UnknownIssuer))
                if self.known.iter().any(|known| known == shown) =>
            {
                if self.named {
                    verify_server_name(&ParsedCertificate::try_from(shown)?, host)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            judged => judged,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl MakeTlsConnect<Socket> for PgTlsConnector {
    type Stream = PgTlsStream;
    type TlsConnect = ToHost;
    type Error = PgTlsError;

    fn make_tls_connect(&mut self, host: &str) -> Result<ToHost, PgTlsError> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| PgTlsError::Host)?;
        Ok(ToHost { connector: self.clone(), name })
    }
}

/// Performs the handshake with one host.
pub struct ToHost {
    connector: PgTlsConnector,
    name: ServerName<'static>,
}

impl TlsConnect<Socket> for ToHost {
    type Stream = PgTlsStream;
    type Error = PgTlsError;
    type Future = Pin<Box<dyn Future<Output = Result<PgTlsStream, PgTlsError>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let Self { connector: PgTlsConnector { config, trusted }, name } = self;
            let connecting = TlsConnector::from(config).connect(name, socket);
            connecting.await.map(PgTlsStream).map_err(|error| PgTlsError::Handshake(words(&error, &trusted)))
        })
    }
}

/// Returns the error message of a failed handshake.
fn words(error: &io::Error, trusted: &str) -> String {
    let held = error.get_ref().map(|held| held as &(dyn StdError + 'static));
    match held.and_then(|held| held.downcast_ref::<Error>()) {
        Some(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            format!("no authority in {trusted} has signed the server's certificate")
        }
        Some(Error::InvalidCertificate(CertificateError::BadSignature)) => {
            format!(
                "the server's certificate has a wrong signature; perhaps an authority with the same name as one in {trusted} made it"
            )
        }
        Some(Error::InvalidCertificate(CertificateError::NotValidForNameContext { expected, presented })) => {
            let presented = if presented.is_empty() { "none".to_owned() } else { presented.join(", ") };
            format!("the server's certificate is for another host: not for {}, but for {presented}", expected.to_str())
        }
        Some(Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. })) => {
            "the server's certificate has expired".to_owned()
        }
        Some(other) => other.to_string(),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "the server closed the connection in the middle of it".to_owned()
        }
        None => error.to_string(),
    }
}

/// TLS connection to the database.
pub struct PgTlsStream(tokio_rustls::client::TlsStream<Socket>);

impl ::postgres::tls::TlsStream for PgTlsStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for PgTlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for PgTlsStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
