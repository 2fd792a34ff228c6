//! TLS files: readability, validity of the certificates, match of key and certificate.

use super::finding::Finding;
use signalbox_transport::tls::{self, BackTlsSpec, CertificateInfo, PairFiles, Validity};
use signalbox_wire::timestamp;
use std::path::Path;
use std::time::SystemTime;

const CHECK: &str = "certificate";
const RENEW: &str = "renew the certificate and write it to the same file; it is loaded without a restart";

/// Checks the certificates of a PEM file. The first is the listener's own, the others lead to its issuer.
#[must_use]
pub fn certificate(path: &Path, now: SystemTime) -> Vec<Finding> {
    chain(path, now, "correct `cert_file`, or create the certificate again as PEM")
}

/// Checks the certificates of the authorities that peers' certificates must be signed by.
#[must_use]
pub fn authorities(path: &Path, now: SystemTime) -> Vec<Finding> {
    chain(path, now, "correct `ca_file`, or write the authority's certificate there as PEM")
}

/// Checks that the private key belongs to the first certificate, and that other users cannot read it.
#[must_use]
pub fn key(path: &Path, certificate: &Path) -> Vec<Finding> {
    let shown = path.display().to_string();
    let pair = PairFiles { cert_file: certificate.to_owned(), key_file: path.to_owned() };
    let mut findings = vec![match pair.check() {
        Ok(()) => Finding::ok(CHECK, "the key belongs to the certificate").at(&shown),
        Err(error) => {
            let advice = "correct `key_file` and `cert_file`: both PEM, the key without a passphrase and made for the certificate that comes first";
            Finding::problem(CHECK, error.to_string(), advice).at(&shown)
        }
    }];
    if tls::is_exposed(path) {
        let advice = format!("remove their access: `chmod 600 {shown}`");
        findings.push(Finding::warning(CHECK, "other users may read the key", advice).at(&shown));
    }
    findings
}

/// Checks the files used for TLS to a backend.
#[must_use]
pub fn of_backend(spec: &BackTlsSpec, now: SystemTime) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(file) = &spec.ca_file {
        findings.extend(authorities(file, now));
    }
    if let Some(pair) = &spec.identity {
        findings.extend(certificate(&pair.cert_file, now));
        findings.extend(key(&pair.key_file, &pair.cert_file));
    }
    findings
}

fn chain(path: &Path, now: SystemTime, advice: &str) -> Vec<Finding> {
    match tls::examine(path) {
        Ok(all) => all.iter().map(|one| validity(one, path, now)).collect(),
        Err(error) => vec![Finding::problem(CHECK, error.to_string(), advice).at(path.display().to_string())],
    }
}

fn validity(certificate: &CertificateInfo, path: &Path, now: SystemTime) -> Finding {
    let until = timestamp::readable(certificate.not_after);
    let finding = match certificate.validity(now) {
        Validity::Expired => Finding::problem(CHECK, format!("the certificate has expired on {until}"), RENEW),
        Validity::Future => {
            let found = format!("the certificate is not valid before {}", timestamp::readable(certificate.not_before));
            let advice = "wait until then, or look at this machine's clock; a certificate made on a machine whose clock is ahead must be made again";
            Finding::problem(CHECK, found, advice)
        }
        Validity::Soon(left) => {
            let found = format!("the certificate expires on {until}, in {} days", left.as_secs() / 86_400);
            Finding::warning(CHECK, found, RENEW)
        }
        Validity::Good => Finding::ok(CHECK, format!("the certificate is valid until {until}")),
    };
    finding.at(path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Severity;
    use std::path::PathBuf;
    use std::process::Command;
    use std::time::Duration;

    /// A key and a certificate that is valid for so many days from now on, made by openssl.
    fn made(folder: &Path, name: &str, kind: &[&str], days: &str) -> (PathBuf, PathBuf) {
        let (key, certificate) = (folder.join(format!("{name}.key")), folder.join(format!("{name}.pem")));
        let done = Command::new("openssl")
            .args(["req", "-x509", "-nodes", "-subj", "/CN=box.example", "-days", days])
            .args(kind)
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        (key, certificate)
    }

    const P256: &[&str] = &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
    const RSA: &[&str] = &["-newkey", "rsa:2048"];
    const ED25519: &[&str] = &["-newkey", "ed25519"];

    fn days(days: u64) -> Duration {
        Duration::from_secs(days * 86_400)
    }

    #[test]
    fn validity_is_held_against_the_clock() {
        let folder = tempfile::tempdir().unwrap();
        let (_, file) = made(folder.path(), "a", P256, "30");
        let now = SystemTime::now();
        let check = |at| certificate(&file, at).remove(0);
        assert_eq!(check(now).severity, Severity::Ok);
        let soon = check(now + days(20));
        assert!(soon.severity == Severity::Warning && soon.found.contains("expires on "), "{soon:?}");
        let late = check(now + days(40));
        assert!(late.severity == Severity::Problem && late.found.contains("has expired on "), "{late:?}");
        assert!(late.advice.unwrap().contains("renew the certificate"));
        let early = check(now - days(1));
        assert!(early.severity == Severity::Problem && early.found.contains("not valid before"), "{early:?}");
        assert!(early.advice.unwrap().contains("clock"));
    }

    #[test]
    fn a_key_must_fit_its_certificate() {
        let folder = tempfile::tempdir().unwrap();
        let (other, _) = made(folder.path(), "other", P256, "30");
        for (name, kind) in [("p256", P256), ("rsa", RSA), ("ed25519", ED25519)] {
            let (own, file) = made(folder.path(), name, kind, "30");
            assert_eq!(key(&own, &file)[0].severity, Severity::Ok, "{name}");
            let wrong = key(&other, &file).remove(0);
            assert!(
                wrong.severity == Severity::Problem && wrong.found.contains("is not the key of the certificate"),
                "{name}: {wrong:?}"
            );
        }
        // The older forms that many tools still write.
        for (name, program) in [("p256", "ec"), ("rsa", "rsa")] {
            let (own, old) = (folder.path().join(format!("{name}.key")), folder.path().join(format!("{name}.old")));
            let mut command = Command::new("openssl");
            command.arg(program).arg("-in").arg(&own).arg("-out").arg(&old);
            if program == "rsa" {
                command.arg("-traditional");
            }
            assert!(command.output().unwrap().status.success(), "{name}");
            assert!(
                std::fs::read_to_string(&old).unwrap().contains(&format!("BEGIN {} PRIVATE", program.to_uppercase()))
            );
            assert_eq!(key(&old, &folder.path().join(format!("{name}.pem")))[0].severity, Severity::Ok, "{name}");
        }
    }

    #[test]
    fn what_cannot_be_read_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let junk = folder.path().join("junk.pem");
        std::fs::write(&junk, "nothing").unwrap();
        let now = SystemTime::now();
        for file in [junk.as_path(), &folder.path().join("missing.pem"), Path::new("/dev/null")] {
            for finding in [certificate(file, now), authorities(file, now), key(file, file)] {
                assert_eq!(finding[0].severity, Severity::Problem, "{file:?}");
                assert!(finding[0].advice.as_ref().unwrap().contains("correct `"), "{finding:?}");
            }
        }
    }
}
