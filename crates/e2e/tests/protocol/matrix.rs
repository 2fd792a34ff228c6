//! Every revision meets every other through the gateway, over every transport; the outcome is a page of the
//! documentation.
//!
//! `MCP_TEST_BLESS=1` writes the page anew.
//! `MCP_TEST_CELLS="client=2026-07-28 server=2025-06-18 front=Http back=Stdio"` (any of them) tries only such cells and
//! says what came of each, without looking at the page.

use std::collections::HashMap;
use std::path::PathBuf;

use signalbox_testkit::matrix::{BackTransport, CellVerdict, FrontTransport, Measured, page, run};
use signalbox_testkit::revision::Revision;

fn page_file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/revisions.md")
}

/// What failed, cell by cell; the same reason is told once per cell.
fn failures(measured: &[Measured]) -> Vec<String> {
    let mut failures = Vec::new();
    for Measured { client, front, server, back, verdicts } in measured {
        let mut seen = Vec::new();
        for (feature, verdict) in verdicts {
            if let CellVerdict::Fails(why) = verdict
                && !seen.contains(why)
            {
                failures.push(format!("{client} {front:?} -> {server} {back:?}: {}: {why}", feature.name()));
                seen.push(why.clone());
            }
        }
    }
    failures
}

/// The cells that `MCP_TEST_CELLS` asks for.
fn wanted(words: &str) -> impl Fn(Revision, FrontTransport, Revision, BackTransport) -> bool {
    let words: HashMap<String, String> = words
        .split_whitespace()
        .filter_map(|word| word.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    move |client, front, server, back| {
        let is = |key: &str, value: String| words.get(key).is_none_or(|wanted| *wanted == value);
        is("client", client.to_string())
            && is("front", format!("{front:?}"))
            && is("server", server.to_string())
            && is("back", format!("{back:?}"))
    }
}

/// Proves S-59 and S-67.
#[tokio::test(flavor = "multi_thread")]
async fn every_revision_meets_every_other() {
    if let Ok(words) = std::env::var("MCP_TEST_CELLS") {
        let measured = run(wanted(&words)).await.unwrap();
        for cell in &measured {
            for (feature, verdict) in &cell.verdicts {
                let Measured { client, front, server, back, .. } = cell;
                println!("{client} {front:?} -> {server} {back:?}: {}: {verdict}", feature.name());
            }
        }
        assert!(!measured.is_empty(), "no cell fits {words:?}");
        assert!(failures(&measured).is_empty(), "\n{}", failures(&measured).join("\n"));
        return;
    }
    let measured = run(|_, _, _, _| true).await.unwrap();
    let page = page(&measured);
    let failures = failures(&measured);
    if std::env::var("MCP_TEST_BLESS").as_deref() == Ok("1") {
        std::fs::create_dir_all(page_file().parent().unwrap()).unwrap();
        std::fs::write(page_file(), &page).unwrap();
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    let written = std::fs::read_to_string(page_file()).unwrap_or_default();
    assert!(written == page, "docs/revisions.md is not what was measured; MCP_TEST_BLESS=1 writes it anew:\n{page}");
}
