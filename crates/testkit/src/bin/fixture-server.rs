//! An MCP server for tests: `fixture-server --http 127.0.0.1:0` or `fixture-server --stdio`.

use std::io::Write as _;
use std::net::SocketAddr;

use clap::Parser;
use signalbox_testkit::fixture::{Options, ServedEra, http, stdio};

/// An MCP server for tests. It speaks every revision of the protocol and keeps no secrets.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Serve Streamable HTTP on this address; port 0 takes any, and the first line of output tells which.
    #[arg(long, value_name = "ADDRESS", required_unless_present = "stdio")]
    http: Option<SocketAddr>,
    /// Serve standard input and output.
    #[arg(long, conflicts_with = "http")]
    stdio: bool,
    /// Which revisions to serve.
    #[arg(long, value_enum, default_value = "both")]
    era: ServedEra,
    /// What the server calls itself.
    #[arg(long, default_value = "signalbox-fixture")]
    name: String,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(run(arguments));
    // A read of standard input cannot be called off, and would hold up the end.
    runtime.shutdown_background();
    result
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let options = Options { era: arguments.era, name: arguments.name };
    let Some(address) = arguments.http else {
        return stdio::serve(options).await;
    };
    let running = http::start(address, options).await?;
    let mut output = std::io::stdout();
    writeln!(output, "listening {}", running.url())?;
    output.flush()?;
    running.wait().await;
    Ok(())
}
