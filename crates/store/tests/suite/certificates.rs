//! Certificates made by the `openssl` program.

use std::path::{Path, PathBuf};
use std::process::Command;

const KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];

/// An authority in a folder.
pub struct Authority<'a> {
    folder: &'a Path,
    name: &'a str,
}

impl<'a> Authority<'a> {
    /// Makes one.
    pub fn new(folder: &'a Path, name: &'a str) -> Self {
        let own = Self { folder, name };
        let (key, pem, subject) = (format!("{name}.key"), format!("{name}.pem"), format!("/CN=Authority {name}"));
        let usage = ["-addext", "keyUsage=critical,keyCertSign,cRLSign"];
        own.run(
            &[&["req", "-x509", "-days", "3650", "-subj", &subject, "-keyout", &key, "-out", &pem][..], &KEY, &usage]
                .concat(),
        );
        own
    }

    /// Signs a certificate for somebody of these names, and makes its key: the files of both.
    pub fn issue(&self, whom: &str, names: &str) -> (PathBuf, PathBuf) {
        let at = |end: &str| format!("{whom}.{end}");
        let (key, csr, ext, pem, subject) = (at("key"), at("csr"), at("ext"), at("pem"), format!("/CN={whom}"));
        self.run(&[&["req", "-subj", &subject, "-keyout", &key, "-out", &csr][..], &KEY].concat());
        let extensions = format!("subjectAltName={names}\nextendedKeyUsage=serverAuth,clientAuth\n");
        std::fs::write(self.folder.join(&ext), extensions).unwrap();
        let (ca, ca_key) = (format!("{}.pem", self.name), format!("{}.key", self.name));
        self.run(&[
            "x509",
            "-req",
            "-in",
            &csr,
            "-CA",
            &ca,
            "-CAkey",
            &ca_key,
            "-CAcreateserial",
            "-days",
            "3650",
            "-extfile",
            &ext,
            "-out",
            &pem,
        ]);
        (self.folder.join(pem), self.folder.join(key))
    }

    fn run(&self, arguments: &[&str]) {
        let done = Command::new("openssl").args(arguments).current_dir(self.folder).output().unwrap();
        assert!(done.status.success(), "openssl {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
}
