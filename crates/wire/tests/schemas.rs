//! The method table against the published schemas, where they lie beside the checkout.

use std::collections::BTreeSet;
use std::path::PathBuf;

use bytes::Bytes;
use serde_json::Value;
use signalbox_wire::{Envelope, Kind, Notification, RawId, RequestBuilder, Revision, method};

/// In the schema of 2026-07-28, but only as shapes inside `inputRequests`.
const INSIDE_INPUT_REQUESTS: [&str; 3] =
    [method::SAMPLING_CREATE_MESSAGE, method::ELICITATION_CREATE, method::ROOTS_LIST];
/// In use with 2026-07-28, but specified by the tasks extension rather than the core schema.
const TASKS_EXTENSION: [&str; 4] =
    [method::TASKS_GET, method::TASKS_CANCEL, method::TASKS_UPDATE, method::TASKS_CHANGED];

fn methods_of_schema(revision: Revision) -> Option<BTreeSet<String>> {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../../shared/data/schema/{revision}.json"));
    let schema: Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    let definitions = schema.get("definitions").or(schema.get("$defs"))?.as_object()?;
    let name = |definition: &Value| Some(definition.pointer("/properties/method/const")?.as_str()?.to_owned());
    Some(definitions.values().filter_map(name).collect())
}

/// Proves S-60 and N-39.
#[test]
fn the_method_table_agrees_with_every_schema() {
    for revision in Revision::ALL {
        let Some(mut expected) = methods_of_schema(revision) else {
            continue;
        };
        if revision == Revision::V2026_07_28 {
            expected.retain(|name| !INSIDE_INPUT_REQUESTS.contains(&name.as_str()));
            expected.extend(TASKS_EXTENSION.map(String::from));
        }
        let ours: BTreeSet<String> =
            method::all().filter(|name| method::exists(name, revision)).map(String::from).collect();
        assert_eq!(ours, expected, "{revision}");
    }
}

/// Proves S-60.
#[test]
fn a_message_of_every_method_is_read() {
    for name in method::all() {
        let (bytes, kind): (Bytes, Kind) = if method::is_notification(name) {
            (Notification::new(name).param_raw("x", "1").build(), Kind::Notification)
        } else {
            (RequestBuilder::new(name).id(RawId::string("a")).param_raw("x", "1").build(), Kind::Request)
        };
        let envelope = Envelope::parse(bytes).unwrap();
        assert_eq!((envelope.kind(), envelope.method()), (kind, Some(name)));
    }
}
