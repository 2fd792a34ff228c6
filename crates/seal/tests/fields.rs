//! P-29: every field of the definition is signed, or on the list of those that are not on purpose.
//!
//! The test walks the definition, appends each field to a message as protobuf would, and compares what is signed with
//! and without it. A field of the definition that is missing in `prepare` makes it fail.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail wherever it wants")]

use std::collections::BTreeSet;

use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorSet};
use signalbox_seal::proto::DESCRIPTOR;
use signalbox_seal::{
    McpRequest, McpResponse, MessageError, PurposeDna, RequestorIdentity, Timestamp, prepare_request_for_signing,
    prepare_response_for_signing,
};

/// Fields without a signature: it cannot cover itself, hops have their own, and each gateway sets its own ids.
const NOT_SIGNED: [&str; 5] =
    ["McpRequest.signature", "McpRequest.hops", "McpRequest.id_json", "McpResponse.signature", "McpResponse.id_json"];

/// A walk over the fields of a message.
struct Walk {
    set: FileDescriptorSet,
    base: Vec<u8>,
    prepare: fn(&[u8]) -> Vec<u8>,
    seen: BTreeSet<String>,
    faults: Vec<String>,
}

impl Walk {
    fn message(&self, name: &str) -> DescriptorProto {
        let (package, short) = name.trim_start_matches('.').rsplit_once('.').unwrap();
        let nested = package.rsplit_once('.');
        let files = self.set.file.iter();
        let top = files.clone().filter(|file| file.package() == package).flat_map(|file| &file.message_type);
        let inner = files
            .filter(|file| nested.is_some_and(|(package, _)| file.package() == package))
            .flat_map(|file| &file.message_type)
            .filter(|message| nested.is_some_and(|(_, outer)| message.name() == outer))
            .flat_map(|message| &message.nested_type);
        top.chain(inner).find(|message| message.name() == short).unwrap_or_else(|| panic!("no message {name}")).clone()
    }

    /// Checks all fields of a message that is reached over `path`.
    fn fields(&mut self, shown: &str, name: &str, path: &[i32]) {
        for field in self.message(name).field {
            let shown = format!("{shown}.{}", field.name());
            if NOT_SIGNED.contains(&shown.as_str()) {
                let with = self.prepared(path, Some(&field));
                assert_eq!(with, self.prepared(path, None), "{shown} is said not to be signed");
                self.seen.insert(shown);
                continue;
            }
            if self.prepared(path, Some(&field)) == self.prepared(path, None) {
                self.faults.push(shown.clone());
            }
            self.seen.insert(shown.clone());
            let is_message = field.r#type() == Type::Message && field.type_name() != ".google.protobuf.Struct";
            if is_message {
                let path: Vec<i32> = path.iter().copied().chain([field.number()]).collect();
                self.fields(&shown, field.type_name(), &path);
            }
        }
    }

    /// What is signed of the base with one more field at the end of a path, or with the path alone.
    fn prepared(&self, path: &[i32], field: Option<&FieldDescriptorProto>) -> Vec<u8> {
        let inner = field.map(encoded).unwrap_or_default();
        let whole = path.iter().rev().fold(inner, |inner, number| delimited(*number, &inner));
        (self.prepare)(&[self.base.clone(), whole].concat())
    }
}

/// A field with some value other than its default.
fn encoded(field: &FieldDescriptorProto) -> Vec<u8> {
    let number = field.number();
    match field.r#type() {
        Type::String => delimited(number, text(field).as_bytes()),
        Type::Bytes if field.name().ends_with("_json") => delimited(number, br#"{"x":1}"#),
        Type::Bytes => delimited(number, b"x"),
        Type::Message if field.type_name() == ".google.protobuf.Struct" => {
            // {"x": true}
            let value = [0x20, 1];
            delimited(number, &delimited(1, &[delimited(1, b"x"), delimited(2, &value)].concat()))
        }
        Type::Message => delimited(number, b""),
        Type::Double => [varint(u64::try_from(number << 3 | 1).unwrap()), 1.5_f64.to_le_bytes().to_vec()].concat(),
        Type::Enum if field.label() == Label::Repeated => delimited(number, &[1]),
        Type::Enum | Type::Bool | Type::Uint32 | Type::Int32 | Type::Int64 => {
            [varint(u64::try_from(number << 3).unwrap()), varint(1)].concat()
        }
        other => panic!("{}: fields of type {other:?} are not known to this test", field.name()),
    }
}

/// A text that the field may have.
fn text(field: &FieldDescriptorProto) -> &'static str {
    match field.name() {
        "profile" => "mcp-cbor/2",
        _ => "x",
    }
}

fn delimited(number: i32, content: &[u8]) -> Vec<u8> {
    [varint(u64::try_from(number << 3 | 2).unwrap()), varint(content.len() as u64), content.to_vec()].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn walk(name: &str, base: Vec<u8>, prepare: fn(&[u8]) -> Vec<u8>) -> Walk {
    let set = FileDescriptorSet::decode(DESCRIPTOR).unwrap();
    let mut walk = Walk { set, base, prepare, seen: BTreeSet::new(), faults: Vec::new() };
    walk.fields(name, &format!(".signalbox.v1.{name}"), &[]);
    walk
}

/// The text "x" is no domain, so a message that has it is refused, which is as good as signed.
fn without_domain(bytes: Result<Vec<u8>, MessageError>) -> Vec<u8> {
    match bytes {
        Ok(bytes) => bytes,
        Err(MessageError::WrongDomain { .. }) => b"refused".to_vec(),
        Err(other) => panic!("{other}"),
    }
}

/// Proves P-29.
#[test]
fn every_field_is_signed_or_left_out_on_purpose() {
    let request = McpRequest {
        timestamp: Some(Timestamp { seconds: 7, nanos: 7 }),
        requestor_identity: Some(RequestorIdentity::default()),
        purpose_dna: Some(PurposeDna::default()),
        ..Default::default()
    };
    let response = McpResponse { timestamp: Some(Timestamp { seconds: 7, nanos: 7 }), ..Default::default() };
    let requests = walk("McpRequest", request.encode_to_vec(), |bytes| {
        without_domain(prepare_request_for_signing(&McpRequest::decode(bytes).unwrap()))
    });
    let responses = walk("McpResponse", response.encode_to_vec(), |bytes| {
        without_domain(prepare_response_for_signing(&McpResponse::decode(bytes).unwrap()))
    });
    let faults = [requests.faults, responses.faults].concat();
    // These were there before: setting them again as they are changes nothing.
    let already =
        ["McpRequest.timestamp", "McpRequest.requestor_identity", "McpRequest.purpose_dna", "McpResponse.timestamp"];
    let faults: Vec<_> = faults.iter().filter(|field| !already.contains(&field.as_str())).collect();
    assert!(faults.is_empty(), "not signed, and not on the list of those that are not: {faults:?}");
    let seen: BTreeSet<_> = requests.seen.union(&responses.seen).collect();
    assert!(seen.len() > 90, "only {} fields were found", seen.len());
    for field in NOT_SIGNED {
        assert!(seen.contains(&field.to_owned()), "{field} is on the list and not in the definition");
    }
}
