//! Answers requests that a recorded server can answer without a recorded call: handshakes, pings and lists.

use crate::call_gatherer::era;
use crate::tape_player::TapePlayer;
use bytes::Bytes;
use serde_json::{Map, Value, json};
use signalbox_engine::catalog::ListKind;
use signalbox_wire::{Era, RawId, Revision, builder, codes, meta, method};

/// Answers as of one position on the tape.
pub(crate) struct Introduction<'a> {
    player: &'a TapePlayer,
    place: u64,
}

impl<'a> Introduction<'a> {
    /// Creates the answers as of `place`.
    pub(crate) fn new(player: &'a TapePlayer, place: u64) -> Self {
        Self { player, place }
    }

    /// Returns `true` for methods answered here, other than lists.
    pub(crate) fn answers(name: &str) -> bool {
        [method::INITIALIZE, method::SERVER_DISCOVER, method::PING].contains(&name)
    }

    /// Builds the answer to a handshake, ping or list request.
    pub(crate) fn answer(&self, name: &str, request: &Value, id: &RawId) -> Bytes {
        let modern = era(request) == Era::Modern;
        let result = match (name, ListKind::of_method(name)) {
            (method::INITIALIZE, _) => self.initialize(request),
            (method::SERVER_DISCOVER, _) => self.discover(),
            (_, Some(kind)) => Some(self.list(kind, modern)),
            _ if modern => Some(br#"{"resultType":"complete"}"#.to_vec()),
            _ => Some(b"{}".to_vec()),
        };
        match result {
            Some(result) => builder::response(id, &result),
            None => {
                let text = format!("{name} is of another revision than this tape");
                builder::error(Some(id), codes::METHOD_NOT_FOUND, &text, None)
            }
        }
    }

    fn initialize(&self, request: &Value) -> Option<Vec<u8>> {
        let hello = self.player.hello();
        let spoken = match hello.old {
            Some(spoken) => spoken,
            None if hello.new => return None,
            None => Revision::LATEST_LEGACY,
        };
        let asked = request.pointer("/params/protocolVersion").and_then(Value::as_str).and_then(Revision::parse);
        let agreed = asked.filter(|asked| *asked <= spoken).unwrap_or(spoken);
        let mut result = Map::new();
        result.insert("protocolVersion".to_owned(), agreed.as_str().into());
        result.insert("capabilities".to_owned(), hello.capabilities.unwrap_or_else(|| json!({})));
        let info = hello.info.unwrap_or_else(|| json!({"name": "tape", "version": env!("CARGO_PKG_VERSION")}));
        result.insert("serverInfo".to_owned(), info);
        if let Some(text) = hello.instructions {
            result.insert("instructions".to_owned(), text.into());
        }
        serde_json::to_vec(&result).ok()
    }

    fn discover(&self) -> Option<Vec<u8>> {
        let hello = self.player.hello();
        if !hello.new {
            return None;
        }
        let mut result = json!({
            "resultType": "complete",
            "supportedVersions": [Revision::LATEST.as_str()],
            "capabilities": hello.capabilities.unwrap_or_else(|| json!({})),
            "ttlMs": 0,
            "cacheScope": "private",
        });
        if let Some(info) = hello.info {
            result["_meta"] = json!({meta::SERVER_INFO: info});
        }
        if let Some(text) = hello.instructions {
            result["instructions"] = text.into();
        }
        serde_json::to_vec(&result).ok()
    }

    /// Builds the whole list as one page, with the recorded bytes of each entry.
    fn list(&self, kind: ListKind, modern: bool) -> Vec<u8> {
        let items = self.player.list(self.place, kind);
        let mut result = Vec::with_capacity(64 + items.iter().map(|item| item.get().len() + 1).sum::<usize>());
        result.push(b'{');
        if modern {
            result.extend_from_slice(br#""resultType":"complete","ttlMs":0,"cacheScope":"private","#);
        }
        result.extend_from_slice(format!("\"{}\":[", kind.member()).as_bytes());
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                result.push(b',');
            }
            result.extend_from_slice(item.get().as_bytes());
        }
        result.extend_from_slice(b"]}");
        result
    }
}
