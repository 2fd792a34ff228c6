//! A gateway that records everything, a strict server behind it and a strict client before it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::TcpStream;
use tokio::process::Command;

use super::meeting;
use crate::gateway::stdio_command;
use crate::matrix::{BackTransport, FrontTransport, Journal, backend};
use crate::ports::free_address;
use crate::process::{Spawned, built};
use crate::revision::Revision;
use crate::revision_client::{Answers, Client, Reach};
use crate::revision_server::{Options, RunningServer};
use crate::scene::signal;
use crate::wire_log::{self, Logged};

/// How long anything may take within a meeting.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it waits for an answer where a rule refuses what it waits for.
const REFUSED_PATIENCE: Duration = Duration::from_secs(5);
/// How long an ending may take.
const ENDING: Duration = Duration::from_secs(30);
/// For how long nobody has to say anything until it is called quiet: longer than the gateway holds anything back.
const QUIET: Duration = Duration::from_millis(400);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// Everything is kept as it is.
const RECORD: &str = "[record]\nsampling = \"all\"\n[record.redact]\nenabled = false\n";

/// A client, a server and the transports between them and the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MeetingCell {
    /// The client's revision.
    pub client: Revision,
    /// How it reaches the gateway.
    pub front: FrontTransport,
    /// The server's revision.
    pub server: Revision,
    /// How the gateway reaches it.
    pub back: BackTransport,
}

impl MeetingCell {
    /// What it is called.
    pub fn name(&self) -> String {
        format!("{}-{:?}-{}-{:?}", self.client, self.front, self.server, self.back)
    }
}

/// What came of a meeting.
#[derive(Debug)]
pub struct Met {
    /// What the client sent and received.
    pub client: Vec<Logged>,
    /// What the server sent and received.
    pub server: Vec<Logged>,
    /// When the gateway was told to end, in nanoseconds since 1970.
    pub ended: u64,
    /// What did not go as it should.
    pub troubles: Vec<(String, String)>,
    /// Its folder; the data folder is in it.
    folder: tempfile::TempDir,
}

impl Met {
    /// The data folder of the gateway.
    pub fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }
}

/// Lets a client and a server meet through a gateway with these rules, and ends the gateway in good order.
///
/// # Errors
/// When they cannot meet at all.
pub async fn meet(cell: MeetingCell, rules: &str, refused: bool) -> anyhow::Result<Met> {
    let folder = tempfile::tempdir()?;
    let journal = Journal::new(folder.path().join("journal"));
    let log = folder.path().join("wire");
    let options = Options {
        revision: cell.server,
        journal: Some(journal.path().to_owned()),
        wire_log: Some(log.clone()),
        odd: true,
    };
    let (config, server) = backend(&options, cell.back).await?;
    let config = format!("{}{config}{RECORD}{rules}", transport(cell.front));
    let (gateway, reach) = gateway(cell.front, &config, folder.path()).await?;
    let mut answers = Answers::all(&cell.name());
    answers.tasks = true;
    let patience = if refused { REFUSED_PATIENCE } else { PATIENCE };
    let client = Client::open_with(cell.client, reach, answers, patience).await.context("no handshake")?;
    within("the server is not known", known(&client, &log, refused)).await?;
    let troubles = meeting::meet(&cell, &client, &journal, patience).await;
    quiet(&client, &log).await;
    let (ended, client) = end(gateway, client, server).await?;
    Ok(Met { client, server: wire_log::read(&log)?, ended, troubles, folder })
}

/// Waits for something, but not for ever.
async fn within<T>(otherwise: &'static str, waiting: impl Future<Output = T>) -> anyhow::Result<T> {
    tokio::time::timeout(ENDING, waiting).await.context(otherwise)
}

/// Waits until the gateway knows the tools of the server; a client that is refused everything cannot see that.
async fn known(client: &Client, log: &Path, refused: bool) {
    loop {
        let known = match refused {
            true => listed(log),
            false => client.list("tools/list", "tools").await.is_ok_and(|tools| !tools.is_empty()),
        };
        if known {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Whether the server was asked for its tools and answered.
fn listed(log: &Path) -> bool {
    let messages = wire_log::read(log).unwrap_or_default();
    messages
        .iter()
        .any(|message| message.way == wire_log::MessageDirection::Sent && message.text.contains("\"tools\":["))
}

fn transport(front: FrontTransport) -> &'static str {
    if front == FrontTransport::Tcp { "[mcp.protocol.transport]\ntype = \"tcp\"\n" } else { "" }
}

/// A gateway that runs by itself, and how a client reaches it; over stdio the client starts it.
async fn gateway(front: FrontTransport, config: &str, folder: &Path) -> anyhow::Result<(Option<Spawned>, Reach)> {
    if front == FrontTransport::Stdio {
        return Ok((None, Reach::Stdio(stdio_command(folder, config)?)));
    }
    let address = free_address()?;
    let file = folder.join("signalbox.toml");
    std::fs::write(&file, config)?;
    let mut command = Command::new(built("signalbox")?);
    command.args(["serve", "--listen", &address.to_string()]);
    command.arg("-c").arg(&file).arg("--data-dir").arg(folder.join("data"));
    let process = Spawned::start(command)?;
    let listening = async {
        while TcpStream::connect(address).await.is_err() {
            tokio::time::sleep(LOOK).await;
        }
    };
    let listens = within("the gateway does not listen", listening).await;
    listens.with_context(|| process.error_lines().join("\n"))?;
    Ok((Some(process), reach(front, address)))
}

fn reach(front: FrontTransport, address: SocketAddr) -> Reach {
    match front {
        FrontTransport::Http => Reach::Http(format!("http://{address}/mcp")),
        FrontTransport::Sse => Reach::Sse(format!("http://{address}/sse")),
        FrontTransport::Ws => Reach::Ws(format!("ws://{address}/mcp")),
        FrontTransport::Tcp | FrontTransport::Stdio => Reach::Tcp(address.to_string()),
    }
}

/// Waits until nobody has said anything for a while, so that nothing is on its way when the gateway ends.
async fn quiet(client: &Client, log: &Path) {
    let said = || (client.wire_log().len(), std::fs::metadata(log).map_or(0, |file| file.len()));
    let (mut before, mut since) = (said(), tokio::time::Instant::now());
    while since.elapsed() < QUIET {
        tokio::time::sleep(LOOK).await;
        let now = said();
        if now != before {
            (before, since) = (now, tokio::time::Instant::now());
        }
    }
}

/// Ends the gateway in good order; returns when that began, and everything the client saw.
async fn end(
    gateway: Option<Spawned>,
    mut client: Client,
    server: Option<RunningServer>,
) -> anyhow::Result<(u64, Vec<Logged>)> {
    let began = wire_log::now();
    match gateway {
        Some(mut gateway) => {
            signal(gateway.pid().context("the gateway is gone")?, "TERM").await?;
            let status = gateway.wait(ENDING).await?;
            anyhow::ensure!(status.success(), "{status}: {}", gateway.error_lines().join("\n"));
        }
        None => client.end().await?,
    }
    let reading = async {
        while !client.ended() {
            tokio::time::sleep(LOOK).await;
        }
    };
    within("a stream goes on without the gateway", reading).await?;
    drop(server);
    Ok((began, client.wire_log()))
}
