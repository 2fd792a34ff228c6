//! Every file of JSONTestSuite, where it lies beside the checkout, as input to both fronts.

use super::pipe::Pipe;
use super::raw::Raw;
use super::{fixture_config, gateway, no_panic, session, unharmed, works};
use bytes::Bytes;
use serde_json::Value;
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

/// The error that bytes deserve which are no message: its code, and the id it is addressed to.
fn deserved(name: &str, bytes: &[u8]) -> (i64, Value) {
    if let Err(error) = scan(bytes, &Limits::default()) {
        return (error.code(), Value::Null);
    }
    let Err(rejected) = Envelope::parse(Bytes::copy_from_slice(bytes)) else {
        panic!("{name} is a JSON-RPC message");
    };
    let id = rejected.id.map_or(Value::Null, |id| serde_json::from_slice(id.token()).unwrap());
    (-32600, id)
}

fn check(name: &str, bytes: &[u8], message: &Value) {
    let code = message["error"]["code"].as_i64().unwrap_or(0);
    assert_eq!((code, message["id"].clone()), deserved(name, bytes), "{name}: {message}");
}

/// Proves S-66.
#[tokio::test(flavor = "multi_thread")]
async fn every_file_of_the_suite_gets_its_error_over_http() {
    let gateway = gateway().await;
    let mut client = Raw::connect(gateway.address()).await.unwrap();
    let lines = session(&mut client).await;
    for (name, bytes) in files() {
        for headers in [&lines[..], "", "mcp-protocol-version: 2026-07-28\r\nmcp-method: ping\r\n"] {
            let reply = client.post(headers, &bytes).await.unwrap_or_else(|error| panic!("{name}: {error:#}"));
            let message = reply.messages().unwrap().pop().unwrap_or_else(|| panic!("{name}: {reply:?}"));
            check(&name, &bytes, &message);
            assert!(reply.status == 400 && !client.is_closed(), "{name}: {reply:?}");
        }
        works(&mut client, &lines).await;
    }
    unharmed(&gateway);
}

/// Proves S-66.
#[tokio::test(flavor = "multi_thread")]
async fn every_file_of_the_suite_gets_its_error_over_stdio() {
    let mut pipe = Pipe::start(&fixture_config()).await.unwrap();
    for (name, mut bytes) in files() {
        bytes.retain(|byte| *byte != b'\n');
        let line = bytes.strip_suffix(b"\r").unwrap_or(&bytes);
        pipe.line(&bytes).await.unwrap();
        let blank = line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'));
        let mut answers = pipe.sync().await.unwrap();
        answers.retain(|message| message["method"].is_null());
        if blank {
            assert!(answers.is_empty(), "{name}: {answers:?}");
            continue;
        }
        let [message] = &answers[..] else { panic!("{name}: {answers:?}") };
        check(&name, line, message);
    }
    assert!(pipe.pid().is_some());
    no_panic(&pipe.errors());
}
