//! The public conformance runner through the gateway: the same verdict, check by check, as without it.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail wherever it wants, and says what it counted"
)]

use signalbox_testkit::conformance::{Runner, Selection, Status, compare, lost_to_skips};
use signalbox_testkit::fixture::{Options, http};
use signalbox_testkit::gateway::GatewayProcess;
use std::net::{Ipv4Addr, SocketAddr};

async fn same_verdict(folder: &str, selection: Selection) {
    let Some(runner) = Runner::installed(folder).unwrap() else { return };
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let direct = http::start(anywhere, Options::default()).await.unwrap();
    let behind = http::start(anywhere, Options::default()).await.unwrap();
    let gateway = GatewayProcess::serve(&format!("[backends.fixture]\nurl = \"{}\"\n", behind.url())).await.unwrap();
    gateway.ready().await.unwrap();
    let without = runner.judge(&direct.url(), &selection).await.unwrap();
    let through = runner.judge(&gateway.url(), &selection).await.unwrap();
    let counts = [Status::Success, Status::Failure, Status::Skipped].map(|s| (without.count(s), through.count(s)));
    println!("{selection:?}: success, failure, skipped (without, through): {counts:?}");
    assert!(without.count(Status::Success) > 40, "the runner ran next to nothing");
    let mut differences: Vec<String> = compare(&without, &through).iter().map(ToString::to_string).collect();
    differences.extend(lost_to_skips(&without, &through).iter().map(ToString::to_string));
    if !differences.is_empty() {
        println!("--- the gateway said:\n{}", gateway.process.error_lines().join("\n"));
    }
    assert!(differences.is_empty(), "{} checks differ:\n{}", differences.len(), differences.join("\n"));
}

/// Proves S-59.
#[tokio::test(flavor = "multi_thread")]
async fn conformance_2025_06_18_is_the_same_through_the_gateway() {
    same_verdict("conformance-0.2", Selection::Revision("2025-06-18".to_owned())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conformance_2025_11_25_is_the_same_through_the_gateway() {
    same_verdict("conformance-0.2", Selection::Revision("2025-11-25".to_owned())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conformance_2026_07_28_is_the_same_through_the_gateway() {
    same_verdict("conformance-0.2", Selection::Revision("2026-07-28".to_owned())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conformance_0_1_16_is_the_same_through_the_gateway() {
    same_verdict("conformance-0.1", Selection::Default).await;
}
