//! Every file of JSONTestSuite, where it lies beside the checkout, as input to both fronts.

use super::pipe::Pipe;
use super::raw::Raw;
use super::{fixture_config, gateway, no_panic, session, unharmed, works};
use bytes::Bytes;
use signalbox_wire::{Envelope, Limits, scan};
use std::path::PathBuf;

fn files() -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/JSONTestSuite/test_parsing");
    let Ok(entries) = std::fs::read_dir(folder) else {
        println!("SKIP JSONTestSuite: it does not lie beside the checkout");
        return Vec::new();
    };
    let read =
        |entry: std::fs::DirEntry| Some((entry.file_name().into_string().ok()?, std::fs::read(entry.path()).ok()?));
    let mut files: Vec<_> = entries.filter_map(Result::ok).filter_map(read).collect();
    files.sort();
    files
}

/// The error that bytes deserve which are no message.
fn deserved(name: &str, bytes: &[u8]) -> i64 {
    match scan(bytes, &Limits::default()) {
        Err(error) => error.code(),
        Ok(()) => {
            let rejected = Envelope::parse(Bytes::copy_from_slice(bytes));
            assert!(rejected.is_err(), "{name} is a JSON-RPC message");
            -32600
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s66_every_file_of_the_suite_gets_its_error_over_http() {
    let gateway = gateway().await;
    let mut client = Raw::connect(gateway.address()).await.unwrap();
    let lines = session(&mut client).await;
    for (name, bytes) in files() {
        for headers in [&lines[..], "", "mcp-protocol-version: 2026-07-28\r\nmcp-method: ping\r\n"] {
            let reply = client.post(headers, &bytes).await.unwrap_or_else(|error| panic!("{name}: {error:#}"));
            let message = reply.messages().unwrap().pop().unwrap_or_else(|| panic!("{name}: {reply:?}"));
            assert_eq!(message["error"]["code"], deserved(&name, &bytes), "{name}: {message}");
            assert!(message["id"].is_null() && reply.status == 400, "{name}: {reply:?}");
            assert!(!client.is_closed(), "{name}: the connection was closed");
        }
        works(&mut client, &lines).await;
    }
    unharmed(&gateway);
}

#[tokio::test(flavor = "multi_thread")]
async fn s66_every_file_of_the_suite_gets_its_error_over_stdio() {
    let mut pipe = Pipe::start(&fixture_config()).await.unwrap();
    for (name, mut bytes) in files() {
        bytes.retain(|byte| *byte != b'\n');
        let line = bytes.strip_suffix(b"\r").unwrap_or(&bytes);
        pipe.line(&bytes).await.unwrap();
        let blank = line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'));
        let answers = pipe.sync().await.unwrap();
        if blank {
            assert!(answers.is_empty(), "{name}: {answers:?}");
            continue;
        }
        let [message] = &answers[..] else { panic!("{name}: {answers:?}") };
        assert_eq!(message["error"]["code"], deserved(&name, line), "{name}: {message}");
        assert!(message["id"].is_null(), "{name}: {message}");
    }
    assert!(pipe.pid().is_some());
    no_panic(&pipe.errors());
}
