//! Cassettes of `mcp-recorder`: one JSON document with a list of interactions, each a request and its answer.

use super::error::ImportError;
use super::recording::{ImportedMessage, ImportedRecording, Side, Talk};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use signalbox_wire::{json, timestamp};

#[derive(Deserialize)]
struct Cassette<'a> {
    version: String,
    #[serde(default)]
    metadata: Metadata,
    #[serde(borrow)]
    interactions: Vec<Interaction<'a>>,
}

#[derive(Deserialize, Default)]
struct Metadata {
    #[serde(default)]
    recorded_at: Option<String>,
    #[serde(default)]
    transport_type: Option<String>,
    #[serde(default)]
    protocol_version: Option<String>,
}

#[derive(Deserialize)]
struct Interaction<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow, default)]
    request: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    #[serde(default)]
    latency_ms: u64,
}

pub(super) fn read(file: &Bytes) -> Result<ImportedRecording, ImportError> {
    let cassette: Cassette<'_> = serde_json::from_slice(file)
        .map_err(|error| ImportError::At { place: format!("line {}", error.line()), why: error.to_string() })?;
    if cassette.version.split('.').next() != Some("1") {
        let why = format!("cassettes of version {} are not known, only those of 1.x", cassette.version);
        return Err(ImportError::At { place: "version".to_owned(), why });
    }
    let mut recording = ImportedRecording::default();
    let metadata = &cassette.metadata;
    let talk = Talk {
        transport: match metadata.transport_type.as_deref() {
            Some("stdio") => "stdio",
            Some("http" | "streamable-http" | "streamable_http" | "sse") => "http",
            _ => "",
        },
        revision: metadata.protocol_version.clone(),
        ..Talk::default()
    };
    let talk = recording.talk("", || talk)?;
    let mut at = metadata.recorded_at.as_deref().and_then(timestamp::parse_rfc3339);
    for (index, interaction) in cassette.interactions.iter().enumerate() {
        if interaction.kind == "lifecycle" {
            continue;
        }
        let Some(request) = message(interaction.request) else {
            let place = format!("interactions[{index}]");
            return Err(ImportError::At { place, why: "`request` is missing".to_owned() });
        };
        recording.push(ImportedMessage::new(talk, Side::Client, at, request))?;
        at = at.map(|at| at.saturating_add(interaction.latency_ms.saturating_mul(1_000_000)));
        if let Some(response) = message(interaction.response) {
            recording.push(ImportedMessage::new(talk, Side::Server, at, response))?;
        }
    }
    Ok(recording)
}

fn message(value: Option<&RawValue>) -> Option<Bytes> {
    value.map(|value| compact(value.get().as_bytes())).filter(|value| value != "null")
}

/// Copies a value without the white space between its parts.
fn compact(value: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(value.len());
    let mut at = 0;
    while let Some(byte) = value.get(at) {
        let end = match byte {
            b'"' => json::skip_string(value, at).unwrap_or(value.len()),
            _ => at + 1,
        };
        if !byte.is_ascii_whitespace() {
            out.extend_from_slice(value.get(at..end).unwrap_or_default());
        }
        at = end;
    }
    out.into()
}
