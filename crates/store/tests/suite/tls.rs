//! TLS with a real server, mode by mode.

use crate::certificates::Authority;
use crate::make;
use crate::postgres_server::PostgresServer;
use signalbox_engine::record::{StoreError, TapeStore};
use signalbox_store::PostgresStore;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Who may come in: everybody under TLS or not, but `ann` only by her certificate, and `bob` only without TLS.
const WHO: &str = "local all all trust
hostssl all ann all cert
hostnossl all ann all reject
hostssl all bob all reject
host all all all trust
";

/// A server that speaks TLS, whose certificate is for `localhost` only, and what there is to know of it.
struct Secure {
    server: PostgresServer,
    files: TempDir,
}

impl Secure {
    fn start() -> Option<Self> {
        let files = TempDir::new().unwrap();
        let authority = Authority::new(files.path(), "right");
        Authority::new(files.path(), "wrong");
        authority.issue("server", "DNS:localhost");
        authority.issue("ann", "DNS:ann");
        let copied = |folder: &Path| {
            for name in ["server.pem", "server.key", "right.pem"] {
                std::fs::copy(files.path().join(name), folder.join(name)).unwrap();
            }
            let file = |name: &str| folder.join(name).display().to_string();
            vec![
                "listen_addresses=127.0.0.1".to_owned(),
                "ssl=on".to_owned(),
                format!("ssl_cert_file={}", file("server.pem")),
                format!("ssl_key_file={}", file("server.key")),
                format!("ssl_ca_file={}", file("right.pem")),
            ]
        };
        let server = PostgresServer::start_with(copied, WHO)?;
        server.run("CREATE USER ann SUPERUSER; CREATE USER bob SUPERUSER");
        Some(Self { server, files })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    fn open(&self, user: &str, host: &str, said: &str) -> Result<PostgresStore, StoreError> {
        let said = said.replace("FILES", &self.files.path().display().to_string());
        PostgresStore::open(&format!("postgres://{user}:s3cret@{host}:{}/postgres{said}", self.server.port()))
    }

    /// A tape is kept and read, under TLS or not.
    #[track_caller]
    fn works(&self, user: &str, host: &str, said: &str, secure: bool) {
        let store = self.open(user, host, said).unwrap_or_else(|error| panic!("{said}: {error}"));
        assert_eq!(self.server.is_secure(), secure, "{said}");
        let id = format!("{user} {host} {said}");
        make::keep(&store, &id, &make::call(1, 1, "echo", "success", 5));
        assert_eq!(store.tapes().unwrap().iter().filter(|(tape, _)| tape.id == id).count(), 1);
        store.remove(&id).unwrap();
        drop(store);
        // The server notices an end a little later.
        self.server.wait_until_nobody_is_there();
    }

    #[track_caller]
    fn fails(&self, user: &str, host: &str, said: &str, why: &str) {
        let error = self.open(user, host, said).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(why) && !error.contains("s3cret"), "{said}: {error}");
    }
}

#[test]
fn disable_speaks_no_tls() {
    let Some(secure) = Secure::start() else { return };
    secure.works("postgres", "localhost", "?sslmode=disable", false);
    secure.fails("ann", "localhost", "?sslmode=disable", "no encryption");
}

#[test]
fn prefer_speaks_tls_where_it_can_and_asks_nobody() {
    let Some(secure) = Secure::start() else { return };
    secure.works("postgres", "localhost", "", true);
    secure.works("postgres", "127.0.0.1", "?sslmode=prefer", true);
    // This user is let in only without.
    secure.works("bob", "127.0.0.1", "?sslmode=prefer", false);
    let plain = |_: &Path| vec!["listen_addresses=127.0.0.1".to_owned()];
    let server = PostgresServer::start_with(plain, WHO).unwrap();
    let url = format!("postgres://postgres@localhost:{}/postgres", server.port());
    let store = PostgresStore::open(&url).unwrap();
    assert!(!server.is_secure());
    drop(store);
    let error = PostgresStore::open(&format!("{url}?sslmode=require")).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("server does not support TLS"), "{error}");
}

#[test]
fn require_speaks_tls_or_not_at_all() {
    let Some(secure) = Secure::start() else { return };
    secure.works("postgres", "127.0.0.1", "?sslmode=require", true);
    secure.fails("bob", "127.0.0.1", "?sslmode=require", "pg_hba.conf rejects connection");
    // Who names those who sign wants them to count.
    secure.works("postgres", "127.0.0.1", "?sslmode=require&sslrootcert=FILES/right.pem", true);
    let wrong = format!("no authority in {} has signed the server's certificate", secure.file("wrong.pem").display());
    secure.fails("postgres", "127.0.0.1", "?sslmode=require&sslrootcert=FILES/wrong.pem", &wrong);
}

#[test]
fn verify_ca_asks_who_signed_and_not_for_the_name() {
    let Some(secure) = Secure::start() else { return };
    secure.works("postgres", "127.0.0.1", "?sslmode=verify-ca&sslrootcert=FILES/right.pem", true);
    let wrong = format!("no authority in {} has signed the server's certificate", secure.file("wrong.pem").display());
    secure.fails("postgres", "localhost", "?sslmode=verify-ca&sslrootcert=FILES/wrong.pem", &wrong);
    secure.fails("postgres", "localhost", "?sslmode=verify-ca&sslrootcert=FILES/none.pem", "none.pem: ");
    secure.fails("postgres", "localhost", "?sslmode=verify-ca&sslrootcert=FILES/server.key", "there is no certificate");
    secure.fails("postgres", "localhost", "?sslmode=verify-ca", "need sslrootcert");
    // Whoever trusts the server's own certificate needs nobody who signed it.
    secure.works("postgres", "localhost", "?sslmode=verify-ca&sslrootcert=FILES/server.pem", true);
}

#[test]
fn verify_full_asks_for_the_name_as_well() {
    let Some(secure) = Secure::start() else { return };
    secure.works("postgres", "localhost", "?sslmode=verify-full&sslrootcert=FILES/right.pem", true);
    let other = "the server's certificate is for another host: not for 127.0.0.1, but for DnsName(\"localhost\")";
    secure.fails("postgres", "127.0.0.1", "?sslmode=verify-full&sslrootcert=FILES/right.pem", other);
    secure.fails("postgres", "localhost", "?sslmode=verify-full&sslrootcert=FILES/wrong.pem", "no authority in");
    secure.fails("postgres", "127.0.0.1", "?sslmode=verify-full&sslrootcert=FILES/server.pem", "another host");
    secure.fails("postgres", "localhost", "?sslmode=verify-full&sslrootcert=system", "the system's authorities");
}

#[test]
fn a_client_certificate_is_shown() {
    let Some(secure) = Secure::start() else { return };
    let right = "?sslmode=verify-full&sslrootcert=FILES/right.pem";
    secure.fails("ann", "localhost", right, "requires a valid client certificate");
    secure.works("ann", "localhost", &format!("{right}&sslcert=FILES/ann.pem&sslkey=FILES/ann.key"), true);
    secure.fails("ann", "localhost", &format!("{right}&sslcert=FILES/ann.pem&sslkey=FILES/server.key"), "server.key: ");
}
