//! A private Redis: a folder and a port of its own, and nothing written to disk.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long it may take to start or to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that ends with the test.
pub struct RedisServer {
    child: Child,
    folder: TempDir,
    port: u16,
    settings: Vec<String>,
}

#[allow(dead_code, reason = "each test that includes this file uses a part of it")]
impl RedisServer {
    /// Starts one; none if Redis is not installed.
    pub fn start() -> Option<Self> {
        Self::start_with(|_, port| vec!["--port".into(), port.to_string()])
    }

    /// Starts one with these settings, which name the port and may name files that are made in its folder.
    pub fn start_with(settings: impl Fn(&Path, u16) -> Vec<String>) -> Option<Self> {
        if Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_err() {
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "redis-server is not installed");
            eprintln!("SKIP Redis: run script/install-test-deps");
            return None;
        }
        // Somebody else may take a port between its choice and its use.
        for _ in 0..5 {
            let folder = tempfile::Builder::new().prefix("redis").tempdir().unwrap();
            let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let settings = settings(folder.path(), port);
            let child = spawn(folder.path(), &settings);
            let mut server = Self { child, folder, port, settings };
            if server.answers() {
                return Some(server);
            }
        }
        panic!("the server does not start");
    }

    /// Its address, for a server without TLS and password.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends it, with everything that it knew.
    pub fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again, empty.
    pub fn start_again(&mut self) {
        self.child = spawn(self.folder.path(), &self.settings);
        assert!(self.answers(), "the server does not start again");
    }

    /// It hangs: connections are taken and nothing is answered.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// It goes on.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").arg(signal).arg(self.child.id().to_string()).status().unwrap();
        assert!(sent.success());
    }

    /// What it answers to one command, as it stands on the wire.
    pub fn command(&self, command: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(format!("{command}\r\nQUIT\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// False if it has ended.
    fn answers(&mut self) -> bool {
        let until = Instant::now() + PATIENCE;
        loop {
            let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            if log.contains("Ready to accept connections") {
                return true;
            }
            if self.child.try_wait().unwrap().is_some() {
                eprintln!("{log}");
                return false;
            }
            assert!(Instant::now() < until, "the server does not answer\n{log}");
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }
}

fn spawn(folder: &Path, settings: &[String]) -> Child {
    let log = std::fs::File::create(folder.join("log")).unwrap();
    let usual = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no", "--dir"];
    let mut command = Command::new("redis-server");
    command.args(usual).arg(folder).args(settings).stdin(Stdio::null()).stdout(log).stderr(Stdio::null());
    command.spawn().unwrap()
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.stop();
    }
}
