//! `revision-server`: an MCP server that speaks exactly one revision.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;
use signalbox_testkit::revision::Revision;
use signalbox_testkit::revision_server::{Network, Options, start, stdio};

/// Where to serve.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Place {
    /// Serve standard input and output.
    #[arg(long)]
    stdio: bool,
    /// Serve Streamable HTTP on this address; port 0 takes any.
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// Serve HTTP+SSE on this address.
    #[arg(long, value_name = "ADDRESS")]
    sse: Option<SocketAddr>,
    /// Serve WebSocket on this address.
    #[arg(long, value_name = "ADDRESS")]
    ws: Option<SocketAddr>,
    /// Serve lines over TCP on this address.
    #[arg(long, value_name = "ADDRESS")]
    tcp: Option<SocketAddr>,
}

/// An MCP server that speaks exactly one revision, and is strict about it.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    place: Place,
    /// The revision: 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 or 2026-07-28.
    #[arg(long)]
    revision: Revision,
    /// A file that gets a line for everything counted.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// A file that gets every message that is sent or received.
    #[arg(long, value_name = "FILE")]
    wire_log: Option<PathBuf>,
    /// Have tools that do what no server should.
    #[arg(long)]
    odd: bool,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(run(arguments));
    // A read of standard input cannot be called off, and would hold up the end.
    runtime.shutdown_background();
    result
}

async fn run(Arguments { place, revision, journal, wire_log, odd }: Arguments) -> anyhow::Result<()> {
    let options = Options { revision, journal, wire_log, odd };
    let web = [(Network::Http, place.http), (Network::Sse, place.sse)];
    let mut network = web.into_iter().chain([(Network::Ws, place.ws), (Network::Tcp, place.tcp)]);
    let Some((network, address)) = network.find_map(|(network, address)| Some((network, address?))) else {
        return stdio(&options).await;
    };
    let running = start(&options, network, address).await?;
    let mut output = std::io::stdout();
    writeln!(output, "listening {}", running.url())?;
    output.flush()?;
    running.wait().await;
    Ok(())
}
