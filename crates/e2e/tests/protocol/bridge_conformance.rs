//! The public conformance runner across the eras: an old server must look like a new one through the gateway, a new one
//! like an old one, and the gateway like a good client to both.
//!
//! The page `docs/bridge-conformance.md` lists the checks that cannot pass, with reasons. The test fails if a failing
//! check is missing there, or if a listed one passes.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail wherever it wants, and says what it counted"
)]

use signalbox_testkit::clients::{everything, run_script};
use signalbox_testkit::conformance::{ClientVerdict, Known, Runner, RunnerVerdict, Selection, Status};
use signalbox_testkit::fixture::{Options, ServedEra, http};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::process::built;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bridge-conformance.md");
    std::fs::read_to_string(path).unwrap()
}

fn as_on_the_page(run: &str, verdict: &RunnerVerdict, context: &str) {
    let counts = [Status::Success, Status::Failure, Status::Warning, Status::Skipped].map(|s| verdict.count(s));
    println!("{run}: success, failure, warning, skipped: {counts:?}");
    let unlike = Known::read(&page(), run).unwrap().unlike(verdict);
    assert!(unlike.is_empty(), "{run}: {} checks are unlike the page:\n{}\n{context}", unlike.len(), unlike.join("\n"));
}

/// Has the gateway judged in front of this server.
async fn judged(runner: &Runner, run: &str, server: &str, selection: Selection, least: usize) {
    let gateway = GatewayProcess::serve(&format!("[backends.server]\nurl = \"{server}\"\n")).await.unwrap();
    gateway.ready().await.unwrap();
    let verdict = runner.judge(&gateway.url(), &selection).await.unwrap();
    assert!(verdict.count(Status::Success) >= least, "{run}: the runner ran next to nothing");
    as_on_the_page(run, &verdict, &gateway.process.error_lines().join("\n"));
}

async fn fixture(folder: &str, run: &str, era: ServedEra, selection: Selection, least: usize) {
    let Some(runner) = Runner::installed(folder).unwrap() else { return };
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = http::start(anywhere, Options { era, ..Options::default() }).await.unwrap();
    judged(&runner, run, &server.url(), selection, least).await;
}

fn revision(name: &str) -> Selection {
    Selection::Revision(name.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_server_passes_2026_07_28() {
    let run = "old fixture, 2026-07-28";
    fixture("conformance-0.2", run, ServedEra::Old, revision("2026-07-28"), 140).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_server_passes_2025_11_25() {
    let run = "new fixture, 2025-11-25";
    fixture("conformance-0.2", run, ServedEra::New, revision("2025-11-25"), 80).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_server_passes_2025_06_18() {
    let run = "new fixture, 2025-06-18";
    fixture("conformance-0.2", run, ServedEra::New, revision("2025-06-18"), 50).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_server_passes_the_old_runner() {
    fixture("conformance-0.1", "new fixture, runner 0.1.16", ServedEra::New, Selection::Default, 40).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_old_server_passes_2026_07_28() {
    let Some(runner) = Runner::installed("conformance-0.2").unwrap() else { return };
    let Some((_server, address)) = everything("streamableHttp").await.unwrap() else { return };
    let run = "server-everything, 2026-07-28";
    judged(&runner, run, &format!("http://{address}/mcp"), revision("2026-07-28"), 90).await;
}

/// Has a client judged in every scenario of a revision; `through` the gateway or directly.
async fn client(runner: &Runner, revision: &str, era: &str, through: bool) -> ClientVerdict {
    let mut command = format!("{} conformance-client {era}", run_script().display());
    if through {
        command.push_str(&format!(" {}", built("signalbox").unwrap().display()));
    }
    runner.judge_client(&command, revision).await.unwrap()
}

/// The gateway between a client and the runner's server: nothing comes out worse than with the client alone, whichever
/// era the client speaks to the gateway.
async fn no_worse_than_alone(revision: &str, native: &str, other: &str) {
    let Some(runner) = Runner::installed("conformance-0.2").unwrap() else { return };
    let (alone, same, across) = tokio::join!(
        client(&runner, revision, native, false),
        client(&runner, revision, native, true),
        client(&runner, revision, other, true),
    );
    assert_eq!(alone.complaint, None, "the client alone is good");
    assert!(alone.verdict.count(Status::Success) >= 20, "the runner ran next to nothing");
    assert_eq!(alone.verdict.with_status(Status::Failure), Vec::<String>::new());
    for (era, through) in [(native, same), (other, across)] {
        let run = format!("client of the {era} era, server of {revision}");
        let complaint = through.complaint.unwrap_or_default();
        as_on_the_page(&run, &through.verdict.worse_than(&alone.verdict), &complaint);
        assert_eq!(complaint, "", "{run}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gateway_is_a_good_client_of_2025_11_25() {
    no_worse_than_alone("2025-11-25", "old", "new").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gateway_is_a_good_client_of_2026_07_28() {
    no_worse_than_alone("2026-07-28", "new", "old").await;
}
