//! The fixture before its judge. Runs only where the judge is installed: set `CONFORMANCE_NODE` to a Node 22 and
//! `CONFORMANCE_RUNNER` to the runner's `dist/index.js`, then `cargo test -p signalbox-testkit -- --ignored`.

use std::net::{Ipv4Addr, SocketAddr};

use signalbox_testkit::conformance::{Runner, Selection, Status, compare};
use signalbox_testkit::fixture::{Options, http};

#[tokio::test]
#[ignore = "needs the public conformance runner"]
async fn the_fixture_passes_everything_twice_alike() {
    let node = std::env::var("CONFORMANCE_NODE").unwrap();
    let script = std::env::var("CONFORMANCE_RUNNER").unwrap();
    let runner = Runner::new(node, script);
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = http::start(anywhere, Options::default()).await.unwrap();
    let selections = [
        Selection::Revision("2025-06-18".to_owned()),
        Selection::Revision("2025-11-25".to_owned()),
        Selection::Revision("2026-07-28".to_owned()),
        Selection::Requirements("2026-07-28".to_owned()),
    ];
    let once = runner.judge_all(&server.url(), &selections).await.unwrap();
    let twice = runner.judge_all(&server.url(), &selections).await.unwrap();
    for (selection, verdict) in &once {
        let counts = [Status::Success, Status::Warning, Status::Failure].map(|s| verdict.count(s));
        println!("{selection:?}: {counts:?}");
        assert_eq!(verdict.with_status(Status::Failure), [""; 0]);
        assert_eq!(verdict.with_status(Status::Warning), [""; 0]);
        let differences: Vec<String> = compare(verdict, &twice[selection]).iter().map(ToString::to_string).collect();
        assert_eq!(differences, [""; 0]);
    }
}
