//! A private PostgreSQL server: a folder of its own, a socket in it, and no port.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A server that ends with the test.
pub struct PostgresServer {
    child: Child,
    folder: TempDir,
    databases: AtomicU32,
}

impl PostgresServer {
    /// Starts one; none where PostgreSQL is not installed.
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "PostgreSQL is not installed");
            eprintln!("SKIP PostgreSQL: run script/install-test-deps");
            return None;
        };
        // A socket's path must be short.
        let folder = tempfile::Builder::new().prefix("pg").tempdir_in("/tmp").unwrap();
        let root = is_root();
        if root {
            // The server refuses to be root.
            let owned = Command::new("chown").arg("postgres").arg(folder.path()).status().unwrap();
            assert!(owned.success(), "there is no user postgres");
        }
        let data = folder.path().join("data");
        let mut initdb = command(root, &programs.join("initdb"));
        initdb
            .args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-sync", "--locale=C", "-D"])
            .arg(&data);
        let made = initdb.current_dir(folder.path()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut server = command(root, &programs.join("postgres"));
        server.arg("-D").arg(&data).arg("-k").arg(folder.path());
        for setting in ["listen_addresses=", "fsync=off", "max_connections=40", "shared_buffers=32MB"] {
            server.arg("-c").arg(setting);
        }
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child = server.current_dir(folder.path()).stderr(log).stdout(Stdio::null()).spawn().unwrap();
        let server = Self { child, folder, databases: AtomicU32::new(0) };
        server.wait();
        Some(server)
    }

    fn url(&self, database: &str) -> String {
        format!("host={} user=postgres dbname={database} password=s3cret", self.folder.path().display())
    }

    fn wait(&self) {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            match postgres::Client::connect(&self.url("postgres"), postgres::NoTls) {
                Ok(_) => return,
                Err(error) if Instant::now() > until => {
                    let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                    panic!("the server does not answer: {error}\n{log}");
                }
                Err(_) => std::thread::park_timeout(Duration::from_millis(50)),
            }
        }
    }

    /// An empty database.
    pub fn database(&self) -> String {
        let name = format!("d{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.run(&format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// Runs a statement as the owner of everything.
    pub fn run(&self, sql: &str) {
        let mut client = postgres::Client::connect(&self.url("postgres"), postgres::NoTls).unwrap();
        client.batch_execute(sql).unwrap();
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // The postmaster ends its children when it is told to; killing it outright would leave them.
        let asked = Command::new("kill").arg("-QUIT").arg(server_id(&self.folder, self.child.id())).status();
        if asked.is_ok_and(|asked| asked.success()) {
            let _ = self.child.wait();
        } else {
            let _ = self.child.kill();
        }
    }
}

/// The server says its own id; ours may be that of the program which changed the user.
fn server_id(folder: &TempDir, started: u32) -> String {
    let file = std::fs::read_to_string(folder.path().join("data/postmaster.pid")).unwrap_or_default();
    file.lines().next().map_or_else(|| started.to_string(), str::to_owned)
}

fn command(root: bool, program: &Path) -> Command {
    if !root {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]).arg(program);
    command
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout.trim_ascii() == b"0"
}

/// The folder of the newest server that is installed.
fn programs() -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin"))
        .collect();
    found.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths));
    found.retain(|folder| folder.join("initdb").exists() && folder.join("postgres").exists());
    found.sort();
    found.pop()
}
