//! A private PostgreSQL server: a folder of its own, a socket in it, and no port unless a test wants one.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A server that ends with the test.
pub struct PostgresServer {
    child: Child,
    /// How it is started.
    launch: Command,
    folder: TempDir,
    port: u16,
    databases: AtomicU32,
}

impl PostgresServer {
    /// Starts one; none if PostgreSQL is not installed.
    pub fn start() -> Option<Self> {
        Self::start_with(|_| Vec::new(), "local all all trust\n")
    }

    /// Starts one with more settings, which may name files that are made in its folder, and this list of who may come
    /// in.
    pub fn start_with(settings: impl FnOnce(&Path) -> Vec<String>, who: &str) -> Option<Self> {
        let Some(programs) = programs() else {
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "PostgreSQL is not installed");
            eprintln!("SKIP PostgreSQL: run script/install-test-deps");
            return None;
        };
        // A socket's path must be short.
        let mut folder = tempfile::Builder::new().prefix("pg").tempdir_in("/tmp").unwrap();
        let settings = settings(folder.path());
        let root = is_root();
        if root {
            // The server refuses to be root.
            let owned = Command::new("chown").args(["-R", "postgres"]).arg(folder.path()).status().unwrap();
            assert!(owned.success(), "there is no user postgres");
        }
        let data = folder.path().join("data");
        let mut initdb = command(root, &programs.join("initdb"));
        initdb
            .args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-sync", "--locale=C", "-D"])
            .arg(&data);
        let made = initdb.current_dir(folder.path()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        std::fs::write(data.join("pg_hba.conf"), who).unwrap();
        // Somebody else may take a port between its choice and its use.
        for _ in 0..5 {
            let port = free_port();
            let mut server = command(root, &programs.join("postgres"));
            server.arg("-D").arg(&data).arg("-k").arg(folder.path()).args(["-p", &port.to_string()]);
            let usual = ["listen_addresses=", "fsync=off", "max_connections=40", "shared_buffers=32MB"];
            for setting in usual.into_iter().map(str::to_owned).chain(settings.clone()) {
                server.arg("-c").arg(setting);
            }
            let log = std::fs::File::create(folder.path().join("log")).unwrap();
            let child = server.current_dir(folder.path()).stderr(log).stdout(Stdio::null()).spawn().unwrap();
            let mut server = Self { child, launch: server, folder, port, databases: AtomicU32::new(0) };
            if server.answers() {
                return Some(server);
            }
            folder = server.give_up();
        }
        let log = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
        panic!("the server does not start\n{log}");
    }

    /// Its folder, for the next try.
    fn give_up(mut self) -> TempDir {
        let other = TempDir::new().unwrap();
        std::mem::replace(&mut self.folder, other)
    }

    fn url(&self, database: &str) -> String {
        let (folder, port) = (self.folder.path().display(), self.port);
        format!("host={folder} port={port} user=postgres dbname={database} password=s3cret")
    }

    /// The port, for a server that was told to listen.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// False if it has ended.
    fn answers(&mut self) -> bool {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            match postgres::Client::connect(&self.url("postgres"), postgres::NoTls) {
                Ok(_) => return true,
                Err(_) if self.child.try_wait().unwrap().is_some() => return false,
                Err(error) if Instant::now() > until => {
                    let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                    panic!("the server does not answer: {error}\n{log}");
                }
                Err(_) => std::thread::park_timeout(Duration::from_millis(50)),
            }
        }
    }

    /// Ends the server as an administrator does. What it keeps stays.
    pub fn stop(&mut self) {
        self.signal("-INT", &server_id(&self.folder, self.child.id()));
        self.child.wait().unwrap();
    }

    /// Starts it after that, where it was.
    pub fn start_again(&mut self) {
        self.child = self.launch.spawn().unwrap();
        assert!(self.answers(), "the server does not start again");
    }

    /// Stops its processes until the returned guard is dropped: the server takes connections and does not answer.
    pub fn hang(&self) -> Hanging {
        let first = server_id(&self.folder, self.child.id());
        self.signal("-STOP", &first);
        let mut all = Hanging(vec![first.clone()]);
        for child in children(&first) {
            self.signal("-STOP", &child);
            all.0.push(child);
        }
        all
    }

    fn signal(&self, signal: &str, process: &str) {
        assert!(Command::new("kill").args([signal, process]).status().unwrap().success(), "{signal} {process}");
    }

    /// An empty database.
    pub fn database(&self) -> String {
        let name = format!("d{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.run(&format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// Whether the only connection of the program is under TLS.
    pub fn is_secure(&self) -> bool {
        let mut client = postgres::Client::connect(&self.url("postgres"), postgres::NoTls).unwrap();
        let sql = "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'signalbox'";
        client.query_one(sql, &[]).unwrap().get(0)
    }

    /// Waits until the program has no connection left.
    pub fn wait_until_nobody_is_there(&self) {
        let mut client = postgres::Client::connect(&self.url("postgres"), postgres::NoTls).unwrap();
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'signalbox'";
        while client.query_one(sql, &[]).unwrap().get::<_, i64>(0) > 0 {
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    /// Runs a statement as the owner of everything.
    pub fn run(&self, sql: &str) {
        let mut client = postgres::Client::connect(&self.url("postgres"), postgres::NoTls).unwrap();
        client.batch_execute(sql).unwrap();
    }
}

/// A server that hangs.
pub struct Hanging(Vec<String>);

impl Drop for Hanging {
    /// It goes on.
    fn drop(&mut self) {
        let _ = Command::new("kill").arg("-CONT").args(&self.0).status();
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

/// The processes that a process has started.
fn children(parent: &str) -> Vec<String> {
    let all = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let is_child = |process: &String| {
        let about = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // The name, which may hold anything, is in parentheses; the state and the parent come after it.
        about.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)) == Some(parent)
    };
    all.filter(is_child).collect()
}

fn command(root: bool, program: &Path) -> Command {
    if !root {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]).arg(program);
    command
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
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
