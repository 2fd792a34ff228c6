//! Certificates made by the `openssl` program, and its client: a second opinion on everything that has to do with TLS.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How long one run of the program may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// From and until when most certificates are good.
const LONG: (&str, &str) = ("20200101000000Z", "21200101000000Z");
/// Dates that lie behind us.
pub const EXPIRED: (&str, &str) = ("20200101000000Z", "20210101000000Z");

const CONFIG: &str = "[ca]\ndefault_ca = here\n[here]\ndatabase = index.txt\nnew_certs_dir = .\nrand_serial = yes\n\
                      default_md = sha256\nunique_subject = no\npolicy = any\n[any]\ncommonName = supplied\n";

/// An authority in a folder of its own.
#[derive(Debug)]
pub struct Authority {
    folder: tempfile::TempDir,
    /// The program keeps books of what it signs, and does not lock them.
    signing: tokio::sync::Mutex<()>,
}

/// A certificate and its key.
#[derive(Clone, Debug)]
pub struct Issued {
    /// The certificate.
    pub cert: PathBuf,
    /// The key.
    pub key: PathBuf,
}

impl Authority {
    /// Makes one; `None` where `openssl` is not installed.
    ///
    /// # Errors
    /// When it cannot be made; with `CI=true` also when `openssl` is not installed.
    pub async fn new() -> anyhow::Result<Option<Self>> {
        if run(Path::new("."), &["version"]).await.is_err() {
            ensure!(std::env::var("CI").as_deref() != Ok("true"), "openssl is not installed");
            eprintln!("SKIP: openssl is not installed");
            return Ok(None);
        }
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("ca.cnf"), CONFIG)?;
        std::fs::write(folder.path().join("index.txt"), "")?;
        let authority = Self { folder, signing: tokio::sync::Mutex::default() };
        authority.key("ca").await?;
        let usage = ["-addext", "keyUsage=critical,keyCertSign,cRLSign"];
        // Two authorities of one name would be taken for one another.
        let name = format!("/CN=Test authority {}", authority.folder.path().file_name().unwrap_or_default().display());
        let own = ["req", "-x509", "-new", "-key", "ca.key", "-subj", &name, "-days", "3650", "-out", "ca.pem"];
        authority.run(&[&own[..], &usage].concat()).await?;
        Ok(Some(authority))
    }

    /// Its own certificate.
    pub fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// The same as text for a configuration or a command line.
    pub fn ca_text(&self) -> String {
        self.ca().to_string_lossy().into_owned()
    }

    /// Signs a certificate for `localhost` and 127.0.0.1.
    ///
    /// # Errors
    /// When it cannot be made.
    pub async fn local(&self, file: &str) -> anyhow::Result<Issued> {
        self.issue(file, "DNS:localhost,IP:127.0.0.1", LONG).await
    }

    /// Signs a certificate for these names.
    ///
    /// # Errors
    /// When it cannot be made.
    pub async fn named(&self, file: &str, names: &str) -> anyhow::Result<Issued> {
        self.issue(file, names, LONG).await
    }

    /// Signs a certificate for these names, good between these dates.
    ///
    /// # Errors
    /// When it cannot be made.
    pub async fn issue(&self, file: &str, names: &str, (from, until): (&str, &str)) -> anyhow::Result<Issued> {
        let at = |end: &str| format!("{file}.{end}");
        self.key(file).await?;
        let request = ["req", "-new", "-key", &at("key"), "-subj", &format!("/CN={file}"), "-out", &at("csr")];
        self.run(&request).await?;
        let extensions = format!(
            "subjectAltName={names}\nextendedKeyUsage=serverAuth,clientAuth\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
        );
        std::fs::write(self.folder.path().join(at("ext")), extensions)?;
        let mut sign = vec!["ca", "-batch", "-notext", "-config", "ca.cnf", "-cert", "ca.pem", "-keyfile", "ca.key"];
        let (csr, ext, pem) = (at("csr"), at("ext"), at("pem"));
        sign.extend(["-startdate", from, "-enddate", until, "-in", &csr, "-extfile", &ext, "-out", &pem]);
        {
            let _turn = self.signing.lock().await;
            self.run(&sign).await?;
        }
        let path = |end: &str| self.folder.path().join(at(end));
        Ok(Issued { cert: path("pem"), key: path("key") })
    }

    async fn key(&self, file: &str) -> anyhow::Result<()> {
        let path = format!("{file}.key");
        self.run(&["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", &path]).await
    }

    async fn run(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let output = run(self.folder.path(), arguments).await?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "openssl {arguments:?}: {errors}");
        Ok(())
    }
}

impl Issued {
    /// The two lines of a configuration that name it.
    pub fn lines(&self) -> String {
        format!("cert_file = {:?}\nkey_file = {:?}\n", self.cert, self.key)
    }

    /// Copies it over another one, the key first.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn replace(&self, other: &Self) -> anyhow::Result<()> {
        std::fs::copy(&self.key, &other.key)?;
        std::fs::copy(&self.cert, &other.cert)?;
        Ok(())
    }
}

/// Whom a client of ours trusts. Sessions are not resumed, so that every connection sees the certificate.
#[derive(Clone, Debug)]
pub struct Trust(Arc<ClientConfig>);

impl Trust {
    /// The authority, and nobody else.
    ///
    /// # Errors
    /// When its certificate cannot be read.
    pub fn in_authority(authority: &Authority) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(authority.ca())?)?;
        let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        config.resumption = rustls::client::Resumption::disabled();
        Ok(Self(Arc::new(config)))
    }

    /// The same for a client that shows a certificate of its own.
    ///
    /// # Errors
    /// If a certificate or its key cannot be read.
    pub fn showing(authority: &Authority, issued: &Issued) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(authority.ca())?)?;
        let own = vec![CertificateDer::from_pem_file(&issued.cert)?];
        let key = PrivateKeyDer::from_pem_file(&issued.key)?;
        let mut config = ClientConfig::builder().with_root_certificates(roots).with_client_auth_cert(own, key)?;
        config.resumption = rustls::client::Resumption::disabled();
        Ok(Self(Arc::new(config)))
    }

    /// Shakes hands with `localhost`.
    ///
    /// # Errors
    /// When the handshake fails.
    pub async fn connect(&self, socket: TcpStream) -> anyhow::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from("localhost")?;
        Ok(TlsConnector::from(Arc::clone(&self.0)).connect(name, socket).await?)
    }
}

async fn run(folder: &Path, arguments: &[&str]) -> anyhow::Result<Output> {
    let mut command = Command::new("openssl");
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).kill_on_drop(true);
    Ok(tokio::time::timeout(PATIENCE, command.output()).await.context("openssl takes too long")??)
}

/// What `openssl s_client` saw.
#[derive(Clone, Debug)]
pub struct ClientReport {
    /// Whether it ended well.
    pub ok: bool,
    /// What came from the other side, or what is known of the connection.
    pub text: String,
    /// What it complained about.
    pub errors: String,
}

/// Connects with `openssl s_client`, says something and reads until the other side closes. The other side's certificate
/// must be good where `-CAfile` is among the options.
///
/// # Errors
/// When the program cannot be run or does not end.
pub async fn s_client(address: SocketAddr, options: &[&str], input: &str) -> anyhow::Result<ClientReport> {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-connect", &address.to_string()]).args(options).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    // A connection that was refused takes nothing.
    let _ = stdin.write_all(input.as_bytes()).await;
    drop(stdin);
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await.context("s_client does not end")??;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(ClientReport { ok: output.status.success(), text: text(&output.stdout), errors: text(&output.stderr) })
}

/// Sends one HTTP request through `openssl s_client` and returns the whole answer, head and body.
///
/// # Errors
/// When the program cannot be run or does not end.
pub async fn https(address: SocketAddr, options: &[&str], head: &str, body: &str) -> anyhow::Result<ClientReport> {
    let quiet = ["-quiet", "-ign_eof", "-verify_return_error", "-verify_hostname", "localhost"];
    let request =
        format!("{head}\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    s_client(address, &[&quiet, options].concat(), &request).await
}
