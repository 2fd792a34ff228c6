//! `chaos-server`: an MCP server that misbehaves on command.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;
use signalbox_testkit::chaos::server::{ChaosOptions, ServeOn, serve};

/// An MCP server that misbehaves on command.
#[derive(Debug, Parser)]
struct Arguments {
    /// Serve Streamable HTTP on this address; port 0 takes any. Without any address, standard input and output are
    /// served.
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// Serve HTTP+SSE on this address.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "http")]
    sse: Option<SocketAddr>,
    /// Serve WebSocket on this address.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["http", "sse"])]
    ws: Option<SocketAddr>,
    /// Speak 2026-07-28 instead of 2025-06-18.
    #[arg(long)]
    modern: bool,
    /// What it calls itself.
    #[arg(long)]
    name: String,
    /// The file that says how to misbehave.
    #[arg(long, value_name = "FILE")]
    orders: PathBuf,
    /// A file that gets a line for every run of the tool.
    #[arg(long, value_name = "FILE")]
    journal: PathBuf,
}

fn main() -> anyhow::Result<()> {
    let Arguments { http, sse, ws, modern, name, orders, journal } = Arguments::parse();
    let place = match (http, sse, ws) {
        (Some(address), _, _) => ServeOn::Http(address),
        (_, Some(address), _) => ServeOn::Sse(address),
        (_, _, Some(address)) => ServeOn::Ws(address),
        _ => ServeOn::Stdio,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(serve(ChaosOptions { name, modern, orders, journal }, place));
    // A read of standard input cannot be called off, and would hold up the end.
    runtime.shutdown_background();
    result
}
