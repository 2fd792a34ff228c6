//! Which cells there are, and how they are run: a gateway for each group of cells, several groups at the same time.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::cell::{CellVerdict, MatrixCell, try_all};
use super::feature::Feature;
use super::journal::Journal;
use super::places::{BackTransport, FrontTransport, backend};
use crate::gateway::{GatewayProcess, stdio_command};
use crate::ports::free_address;
use crate::process::{Spawned, built};
use crate::revision::Revision;
use crate::revision_client::{Answers, Client, Reach};
use crate::revision_server::Options;

/// How many groups run at the same time.
const AT_ONCE: usize = 4;
/// How long anything may take within a cell.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long the first answer may take, which may wait for a backend to start.
const START: Duration = Duration::from_secs(60);
/// How often it is looked whether a gateway listens.
const LOOK: Duration = Duration::from_millis(20);

/// What came of one cell.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The client's revision.
    pub client: Revision,
    /// How it reached the gateway.
    pub front: FrontTransport,
    /// The server's revision.
    pub server: Revision,
    /// How the gateway reached it.
    pub back: BackTransport,
    /// What came of every feature.
    pub verdicts: Vec<(Feature, CellVerdict)>,
}

/// Cells that share a gateway. They run one after the other, so that what the server wrote down belongs to one of them.
#[derive(Debug, Clone)]
struct Group {
    server: Revision,
    back: BackTransport,
    clients: Vec<(Revision, FrontTransport)>,
}

/// Runs every cell that is wanted.
///
/// # Errors
/// When a group cannot be run at all, which is no verdict about the gateway.
pub async fn run(
    wanted: impl Fn(Revision, FrontTransport, Revision, BackTransport) -> bool,
) -> anyhow::Result<Vec<Measured>> {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut running = JoinSet::new();
    for mut group in groups() {
        group.clients.retain(|(client, front)| wanted(*client, *front, group.server, group.back));
        if group.clients.is_empty() {
            continue;
        }
        let places = places.clone();
        running.spawn(async move {
            let _place = places.acquire().await?;
            group.run().await
        });
    }
    let mut measured = Vec::new();
    while let Some(group) = running.join_next().await {
        measured.extend(group??);
    }
    measured.sort_by_key(|cell| (cell.client, cell.front, cell.server, cell.back));
    Ok(measured)
}

/// All groups: every front over servers that are child processes, then every other back under the clients' HTTP
/// transport.
fn groups() -> Vec<Group> {
    let mut groups = Vec::new();
    for server in Revision::ALL {
        for front in FrontTransport::ALL {
            let clients = Revision::ALL.into_iter().filter(|client| front.fits(*client));
            groups.push(Group {
                server,
                back: BackTransport::Stdio,
                clients: clients.map(|client| (client, front)).collect(),
            });
        }
        for back in BackTransport::ALL.into_iter().filter(|back| *back != BackTransport::Stdio && back.fits(server)) {
            let clients = Revision::ALL.into_iter().map(|client| (client, FrontTransport::main(client)));
            groups.push(Group { server, back, clients: clients.collect() });
        }
    }
    groups
}

/// All cells: the client's revision, its transport, the server's revision, its transport.
pub fn cells() -> Vec<(Revision, FrontTransport, Revision, BackTransport)> {
    let all = groups().into_iter().flat_map(|Group { server, back, clients }| {
        clients.into_iter().map(move |(client, front)| (client, front, server, back))
    });
    all.collect()
}

/// A gateway that clients can reach; it ends with this.
enum Serving {
    Web(GatewayProcess),
    Tcp(#[expect(dead_code, reason = "held so that the process goes on")] Spawned, SocketAddr),
    /// Every client starts its own.
    Stdio,
}

impl Group {
    async fn run(self) -> anyhow::Result<Vec<Measured>> {
        let folder = tempfile::tempdir()?;
        let journal = Journal::new(folder.path().join("journal"));
        let told = Options { journal: Some(journal.path().to_owned()), ..Options::of(self.server) };
        let (config, _server) = backend(&told, self.back).await?;
        let front = self.clients.first().context("no clients")?.1;
        let gateway = gateway(front, &config, folder.path()).await;
        let mut measured = Vec::new();
        for (client, front) in &self.clients {
            let name = format!("{client}-{front:?}-{}-{:?}", self.server, self.back);
            let verdicts = match &gateway {
                Ok(gateway) => self.cell(*client, *front, gateway, &config, &journal, &name).await,
                Err(error) => Err(anyhow::anyhow!("no gateway: {error:#}")),
            };
            let verdicts = verdicts.unwrap_or_else(|error| nothing(&error));
            measured.push(Measured { client: *client, front: *front, server: self.server, back: self.back, verdicts });
        }
        // What came after the last thing tried, as at the end of a session, has no cell after it that would tell.
        let late = journal.violations();
        if let Some((_, verdict)) = measured.last_mut().and_then(|cell| cell.verdicts.last_mut())
            && !late.is_empty()
        {
            *verdict = CellVerdict::Fails(format!("the server says: {}", late.join("; ")));
        }
        Ok(measured)
    }

    async fn cell(
        &self,
        revision: Revision,
        front: FrontTransport,
        gateway: &Serving,
        config: &str,
        journal: &Journal,
        name: &str,
    ) -> anyhow::Result<Vec<(Feature, CellVerdict)>> {
        let own = tempfile::tempdir()?;
        let reach = match (front, gateway) {
            (FrontTransport::Http, Serving::Web(gateway)) => Reach::Http(gateway.url()),
            (FrontTransport::Sse, Serving::Web(gateway)) => Reach::Sse(format!("http://{}/sse", gateway.address())),
            (FrontTransport::Ws, Serving::Web(gateway)) => Reach::Ws(format!("ws://{}/mcp", gateway.address())),
            (_, Serving::Tcp(_, address)) => Reach::Tcp(address.to_string()),
            _ => Reach::Stdio(stdio_command(own.path(), config)?),
        };
        let opening = Client::open_with(revision, reach, Answers::all(name), PATIENCE);
        let client = opening.await.context("no handshake")?;
        // A backend may still be starting; what is measured begins when it is there.
        tokio::time::timeout(START, listed(&client)).await.context("no tools")??;
        let cell = MatrixCell {
            client: &client,
            journal,
            client_revision: revision,
            server_revision: self.server,
            name: name.to_owned(),
            patience: PATIENCE,
        };
        Ok(try_all(&cell).await)
    }
}

/// Waits until the gateway lists a tool.
async fn listed(client: &Client) -> anyhow::Result<()> {
    while client.list("tools/list", "tools").await?.is_empty() {
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

async fn gateway(front: FrontTransport, config: &str, folder: &Path) -> anyhow::Result<Serving> {
    match front {
        FrontTransport::Stdio => Ok(Serving::Stdio),
        FrontTransport::Tcp => tcp_gateway(config, folder).await,
        FrontTransport::Http | FrontTransport::Sse | FrontTransport::Ws => {
            let gateway = GatewayProcess::serve(config).await?;
            gateway.ready().await?;
            Ok(Serving::Web(gateway))
        }
    }
}

/// A gateway that serves lines over TCP.
async fn tcp_gateway(config: &str, folder: &Path) -> anyhow::Result<Serving> {
    let address = free_address()?;
    let file = folder.join("signalbox.toml");
    std::fs::write(&file, format!("[mcp.protocol.transport]\ntype = \"tcp\"\n{config}"))?;
    let mut command = Command::new(built("signalbox")?);
    command.args(["serve", "--listen", &address.to_string()]);
    command.arg("-c").arg(&file).arg("--data-dir").arg(folder.join("data"));
    let mut process = Spawned::start(command)?;
    let listening = async {
        while TcpStream::connect(address).await.is_err() {
            if process.wait(LOOK).await.is_ok() {
                anyhow::bail!("it ended: {}", process.error_lines().join(" "));
            }
        }
        Ok(())
    };
    tokio::time::timeout(START, listening).await.context("it does not listen")??;
    Ok(Serving::Tcp(process, address))
}

/// Verdicts of a cell in which nothing could be tried.
fn nothing(error: &anyhow::Error) -> Vec<(Feature, CellVerdict)> {
    let why = format!("{error:#}").replace('\n', " ");
    Feature::ALL.into_iter().map(|feature| (feature, CellVerdict::Fails(why.clone()))).collect()
}
