//! The backends of a storm: some that are struck by faults and some that are left in peace.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::process::Command;

use super::mode::ChaosMode;
use super::processes;
use super::server::tool;
use crate::ports::free_address;
use crate::process::{Spawned, built};

/// How long a server may take to listen.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a call at a backend that is struck may take, as the gateway is told.
pub const TIMEOUT: Duration = Duration::from_secs(3);

/// How a backend is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CastKind {
    /// A child process of the gateway.
    Child,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE.
    Sse,
    /// WebSocket.
    Ws,
}

/// One backend.
#[derive(Debug)]
pub struct CastMember {
    /// Its name in the config.
    pub name: &'static str,
    /// How it is reached.
    pub kind: CastKind,
    /// Whether it speaks 2026-07-28.
    pub modern: bool,
    /// Whether it is left in peace.
    pub steady: bool,
    /// Its tool, as clients see it.
    pub tool: String,
    address: Option<SocketAddr>,
    orders: PathBuf,
    journal: PathBuf,
    process: tokio::sync::Mutex<Option<Spawned>>,
    /// Whether a fault holds it just now.
    struck: AtomicBool,
}

/// All of them.
#[derive(Debug)]
pub struct Cast {
    /// The backends.
    pub parts: Vec<CastMember>,
    folder: tempfile::TempDir,
}

/// Name, kind, whether of the new era, whether left in peace.
const PARTS: &[(&str, CastKind, bool, bool)] = &[
    ("steady_child", CastKind::Child, false, true),
    ("steady_http", CastKind::Http, true, true),
    ("steady_ws", CastKind::Ws, false, true),
    ("child_old", CastKind::Child, false, false),
    ("child_new", CastKind::Child, true, false),
    ("http_old", CastKind::Http, false, false),
    ("http_new", CastKind::Http, true, false),
    ("sse_old", CastKind::Sse, false, false),
    ("ws_old", CastKind::Ws, false, false),
    ("ws_new", CastKind::Ws, true, false),
];

impl Cast {
    /// Starts every backend that is no child process.
    ///
    /// # Errors
    /// When one does not start.
    pub async fn start() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut parts = Vec::new();
        for (name, kind, modern, steady) in PARTS {
            let address = if *kind == CastKind::Child { None } else { Some(free_address()?) };
            let part = CastMember {
                name,
                kind: *kind,
                modern: *modern,
                steady: *steady,
                tool: tool(name),
                address,
                orders: folder.path().join(format!("{name}.orders")),
                journal: folder.path().join(format!("{name}.journal")),
                process: tokio::sync::Mutex::default(),
                struck: AtomicBool::default(),
            };
            part.start().await?;
            parts.push(part);
        }
        Ok(Self { parts, folder })
    }

    /// The config of a gateway in front of them.
    ///
    /// # Errors
    /// When the server is not built.
    pub fn config(&self) -> anyhow::Result<String> {
        self.parts.iter().map(CastMember::config).collect()
    }

    /// Where files of the storm may lie.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What ran, and how often, by tag.
    ///
    /// # Errors
    /// When a journal cannot be read.
    pub fn runs(&self) -> anyhow::Result<std::collections::BTreeMap<String, u32>> {
        let mut runs = std::collections::BTreeMap::new();
        for part in &self.parts {
            let text = match std::fs::read_to_string(&part.journal) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                read => read?,
            };
            for tag in text.lines() {
                *runs.entry(tag.to_owned()).or_default() += 1;
            }
        }
        Ok(runs)
    }
}

impl CastMember {
    fn arguments(&self) -> Vec<String> {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let mut arguments = vec!["--name".to_owned(), self.name.to_owned()];
        arguments.extend(["--orders".to_owned(), path(&self.orders), "--journal".to_owned(), path(&self.journal)]);
        if self.modern {
            arguments.push("--modern".to_owned());
        }
        if let Some(address) = self.address {
            let flag = match self.kind {
                CastKind::Ws => "--ws",
                CastKind::Sse => "--sse",
                CastKind::Http | CastKind::Child => "--http",
            };
            arguments.extend([flag.to_owned(), address.to_string()]);
        }
        arguments
    }

    fn config(&self) -> anyhow::Result<String> {
        let name = self.name;
        let times = if self.steady {
            "timeout = 120\n".to_owned()
        } else {
            format!("timeout = {}\nstart_timeout = 5\n", TIMEOUT.as_secs())
        };
        let place = match (self.kind, self.address) {
            (CastKind::Ws, Some(address)) => format!("url = \"ws://{address}/mcp\"\n"),
            (CastKind::Sse, Some(address)) => format!("url = \"http://{address}/sse\"\ntransport = \"sse\"\n"),
            (_, Some(address)) => format!("url = \"http://{address}/mcp\"\n"),
            (_, None) => {
                let program = json!(built("chaos-server")?.to_str().context("a path that is no text")?);
                // The storm kills a child more often than any setup does that could be mended by hand.
                format!("command = {program}\nargs = {}\nmax_restarts = 0\n", json!(self.arguments()))
            }
        };
        Ok(format!("[backends.{name}]\n{place}{times}"))
    }

    /// Starts its process, where it has one of its own.
    ///
    /// # Errors
    /// When it does not listen in time.
    pub async fn start(&self) -> anyhow::Result<()> {
        if self.address.is_none() {
            return Ok(());
        }
        let mut command = Command::new(built("chaos-server")?);
        command.args(self.arguments());
        let process = Spawned::start(command)?;
        process.wait_line("listening ", PATIENCE).await?;
        *self.process.lock().await = Some(process);
        Ok(())
    }

    /// Kills its process, where it has one of its own.
    ///
    /// # Errors
    /// When it cannot be killed.
    pub async fn kill(&self) -> anyhow::Result<()> {
        match self.process.lock().await.take() {
            Some(mut process) => process.kill().await,
            None => Ok(()),
        }
    }

    /// Tells it how to answer from here on.
    ///
    /// # Errors
    /// When the order cannot be written.
    pub fn order(&self, mode: ChaosMode) -> anyhow::Result<()> {
        let draft = self.orders.with_extension("draft");
        std::fs::write(&draft, mode.word())?;
        Ok(std::fs::rename(&draft, &self.orders)?)
    }

    /// Its processes: its own, or those that the gateways have started.
    pub async fn pids(&self) -> Vec<u32> {
        if self.address.is_some() {
            return self.process.lock().await.iter().filter_map(Spawned::pid).collect();
        }
        processes::with_argument(&self.orders.to_string_lossy())
    }

    /// Whether a fault holds it.
    pub fn is_struck(&self) -> bool {
        self.struck.load(Ordering::Relaxed)
    }

    /// Says whether one does.
    pub fn set_struck(&self, struck: bool) {
        self.struck.store(struck, Ordering::Relaxed);
    }
}

/// Sends a signal; a process that is gone already is none of our business.
pub fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        let _ = kill_process(pid, signal);
    }
}
