//! Files, names and words, without a connection.

use super::*;
use rcgen::{CertificateParams, KeyPair};
use signalbox_wire::timestamp;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    /// A certificate for this name, and its key.
    fn pair(&self, name: &str) -> PairFiles {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2120, 2, 3);
        let certificate = params.self_signed(&key).unwrap().pem();
        PairFiles {
            cert_file: self.write(&format!("{name}.pem"), &certificate),
            key_file: self.write(&format!("{name}.key"), &key.serialize_pem()),
        }
    }
}

fn spec(pairs: Vec<PairFiles>) -> FrontTlsSpec {
    FrontTlsSpec {
        pairs,
        client_auth: ClientCertPolicy::None,
        min_version: MinVersion::V1_2,
        http: true,
        handshake_timeout: Duration::from_secs(10),
        max_handshakes: 4,
    }
}

fn problem(spec: FrontTlsSpec) -> String {
    match FrontTls::new(spec).unwrap_err() {
        TlsError::File(error) => {
            let name = error.path.file_name().unwrap().to_string_lossy().into_owned();
            let folder = format!("{}/", error.path.parent().unwrap().display());
            assert!(error.to_string().contains(&name), "{error}");
            error.to_string().replace(&folder, "")
        }
        other => panic!("{other}"),
    }
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    let folder = Folder::new();
    let good = folder.pair("a");
    let cert = |path: PathBuf| spec(vec![PairFiles { cert_file: path, ..good.clone() }]);
    let key = |path: PathBuf| spec(vec![PairFiles { key_file: path, ..good.clone() }]);
    assert_eq!(problem(cert(folder.0.path().join("none.pem"))), "none.pem does not exist");
    assert_eq!(problem(cert(folder.0.path().to_owned()).clone()).split_once(' ').unwrap().1, "is not a regular file");
    assert_eq!(
        problem(cert(folder.write("x.pem", "hello"))),
        "x.pem is not PEM, which begins with `-----BEGIN CERTIFICATE-----`"
    );
    assert_eq!(problem(cert(good.key_file.clone())), "a.key holds no certificate (`-----BEGIN CERTIFICATE-----`)");
    assert_eq!(problem(key(good.cert_file.clone())), "a.pem holds no private key (`-----BEGIN PRIVATE KEY-----`)");
    assert_eq!(
        problem(key(folder.write("x.key", "hello"))),
        "x.key is not PEM, which begins with `-----BEGIN PRIVATE KEY-----`"
    );
    assert_eq!(problem(key(folder.pair("b").key_file)), "b.key is not the key of the certificate in a.pem");
    let secret = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    assert!(problem(key(folder.write("e.key", secret))).starts_with("e.key holds an encrypted private key; "));
    let nonsense = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert_eq!(problem(cert(folder.write("n.pem", nonsense))), "n.pem holds a certificate that cannot be read");
    let large = folder.write("l.pem", &"x".repeat(1024 * 1024 + 1));
    assert_eq!(problem(cert(large)), "l.pem is larger than 1048576 bytes");
    let auth = ClientCertPolicy::Required(folder.write("ca.pem", nonsense));
    let refused = problem(FrontTlsSpec { client_auth: auth, ..spec(vec![good]) });
    assert!(refused.starts_with("ca.pem holds a certificate that cannot be used to check others"), "{refused}");
}

#[test]
fn a_key_that_others_can_read_is_noticed() {
    let folder = Folder::new();
    let path = folder.write("k", "");
    for (mode, exposed) in [(0o600, false), (0o640, false), (0o604, true), (0o644, true), (0o400, false)] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(file::is_exposed(&path), exposed, "{mode:o}");
    }
}

#[test]
fn a_certificate_is_inspected() {
    let folder = Folder::new();
    let info = inspect(&std::fs::read(folder.pair("a").cert_file).unwrap()).unwrap();
    assert_eq!(
        (timestamp::readable(info.not_before).as_str(), timestamp::readable(info.not_after).as_str()),
        ("2020-01-01 00:00:00 UTC", "2120-02-03 00:00:00 UTC")
    );
    assert_eq!(info.fingerprint.len(), 64);
    let at = |days: i64| {
        SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(info.not_after + days * 86_400).unwrap())
    };
    assert_eq!(info.validity(at(-15)), Validity::Good);
    assert_eq!(info.validity(at(-13)), Validity::Soon(Duration::from_secs(13 * 86_400)));
    assert_eq!(info.validity(at(1)), Validity::Expired);
    assert_eq!(info.validity(SystemTime::UNIX_EPOCH), Validity::Future);
    assert_eq!(info.warning(at(-15)), None);
    assert!(info.warning(at(-13)).unwrap().contains("expires in 13 days, at 2120-02-03"));
    assert!(info.warning(at(1)).unwrap().contains("has expired at 2120-02-03"));
    assert_eq!(inspect(b""), Err(InspectError::NotPem));
    assert_eq!(inspect(b"-----BEGIN X-----\nAAAA\n-----END X-----\n"), Err(InspectError::NoCertificate));
}

#[test]
fn a_damaged_certificate_is_read_or_refused_but_nothing_worse() {
    let folder = Folder::new();
    let pem = std::fs::read(folder.pair("a").cert_file).unwrap();
    let whole = inspect::certificates(&pem).unwrap().remove(0);
    let dates = der::validity(&whole);
    assert!(dates.is_some());
    for end in 0..whole.len() {
        assert_eq!(der::validity(&whole[..end]), None, "{end}");
    }
    for index in 0..whole.len() {
        for bit in 0..8 {
            let mut damaged = whole.to_vec();
            damaged[index] ^= 1 << bit;
            if let Some((from, until)) = der::validity(&damaged) {
                let _ = (timestamp::readable(from), timestamp::readable(until));
            }
        }
    }
}

#[test]
fn a_reload_takes_all_or_nothing() {
    let folder = Folder::new();
    let (old, new) = (folder.pair("a"), folder.pair("b"));
    let tls = FrontTls::new(spec(vec![old.clone()])).unwrap();
    let shown = || tls.status().certificates[0].fingerprint.clone();
    let first = shown();
    tls.reload_if_changed();
    assert_eq!((tls.status().reloads, shown()), (0, first.clone()));

    std::fs::copy(&new.cert_file, &old.cert_file).unwrap();
    tls.reload_if_changed();
    let status = tls.status();
    assert_eq!((status.reloads, shown()), (0, first.clone()));
    assert!(status.last_error.unwrap().contains("a.key is not the key of the certificate in"));

    std::fs::copy(&new.key_file, &old.key_file).unwrap();
    tls.reload_if_changed();
    let status = tls.status();
    assert_eq!((status.reloads, status.last_error), (1, None));
    assert_ne!(shown(), first);
    assert!(tls.reload().is_ok());
}

#[test]
fn a_certificate_of_our_own_is_made_once_and_for_its_owner_only() {
    let folder = Folder::new();
    let path = folder.0.path().join("tls");
    let first = GeneratedCertificate::prepare(&path).unwrap();
    assert_eq!(GeneratedCertificate::prepare(&path).unwrap(), first);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&first.pair.key_file), mode(&first.ca_file)), (0o700, 0o600, 0o600));
    assert_eq!(first.info.validity(SystemTime::now()), Validity::Good);
    std::fs::write(&first.pair.key_file, "broken").unwrap();
    let second = GeneratedCertificate::prepare(&path).unwrap();
    assert_ne!(second.info.fingerprint, first.info.fingerprint);
    assert!(FrontTls::new(spec(vec![second.pair])).is_ok());
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 3);
}

#[test]
fn a_backends_name_and_files_are_checked() {
    let folder = Folder::new();
    let name: Arc<str> = "b".into();
    let spec = |ca_file: PathBuf| BackTlsSpec { ca_file: Some(ca_file), ..BackTlsSpec::default() };
    let ca_file = folder.pair("a").cert_file;
    assert!(BackTls::new(&name, spec(ca_file.clone()), "127.0.0.1").is_ok());
    assert!(BackTls::new(&name, spec(ca_file.clone()), "box.example").is_ok());
    assert!(matches!(BackTls::new(&name, spec(ca_file), "no host").unwrap_err(), TlsError::Unfit(_)));
    assert!(
        BackTls::new(&name, spec("/nowhere".into()), "h").unwrap_err().to_string().contains("/nowhere does not exist")
    );
}

#[test]
fn causes_are_told_in_plain_words() {
    use rustls::{AlertDescription, CertificateError, Error};
    for (error, expected) in [
        (Error::InvalidCertificate(CertificateError::Expired), "the certificate has expired"),
        (Error::InvalidCertificate(CertificateError::UnknownIssuer), "signed by an unknown authority"),
        (Error::InvalidCertificate(CertificateError::NotValidForName), "for another host"),
        (Error::AlertReceived(AlertDescription::CertificateRequired), "wants a certificate"),
        (Error::AlertReceived(AlertDescription::ProtocolVersion), "no version of TLS"),
    ] {
        let wrapped = std::io::Error::new(std::io::ErrorKind::InvalidData, error.clone());
        let found = find(&wrapped).expect("the cause is found");
        assert!(words(found).contains(expected), "{error}");
    }
    assert!(find(&std::io::Error::other("x")).is_none());
}
