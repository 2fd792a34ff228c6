//! HTTP+SSE of 2024-11-05 on both sides of the real gateway process.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail wherever it wants, and says what it skipped"
)]

mod backends;
mod clients;
mod front;
mod hostile;

use signalbox_testkit::clients::run;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::scene::{eventually, status};

/// A gateway with nothing but the demo tools.
async fn demo() -> GatewayProcess {
    let gateway = GatewayProcess::serve("").await.unwrap();
    gateway.ready().await.unwrap();
    gateway
}

/// Waits until so many sessions are open.
async fn sessions(gateway: &GatewayProcess, wanted: u64) {
    let data_dir = gateway.data_dir();
    let look = async || status(&data_dir).await.ok().filter(|status| status["sessions"] == wanted);
    eventually("so many sessions", look).await.unwrap();
}

/// Whether the real clients and servers are there.
async fn installed() -> bool {
    let installed = run(&["ts-sdk1", "--help"]).await;
    if matches!(installed, Ok(None)) {
        println!("SKIP real clients: run script/install-test-deps");
        return false;
    }
    true
}
