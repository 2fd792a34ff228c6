//! One entry of a list, stored as the bytes the backend sent.

use super::{ListKind, NameStyle};
use bytes::Bytes;
use signalbox_wire::header_params::{HeaderSchemaError, ParamHeader, param_headers};
use signalbox_wire::uri_readings::has_control;
use signalbox_wire::{Edits, Span, json};
use std::sync::Arc;

/// Paths of the members by which a tool links to its app page.
const APP_LINKS: [&[&str]; 2] = [&["_meta", "ui", "resourceUri"], &["_meta", "ui/resourceUri"]];

/// A tool, prompt, resource or template. Unknown members are preserved.
#[derive(Clone, Debug)]
pub struct Item {
    /// The backend's name or URI for the entry.
    pub key: Box<str>,
    /// Bytes of the entry as the backend sent it.
    pub raw: Bytes,
    /// Rank in the order in which the backend's entries were first seen.
    pub(super) rank: u64,
    key_span: Span,
    /// Links to app pages: `_meta.ui.resourceUri`, and the older `_meta["ui/resourceUri"]`.
    apps: Box<[(Span, Box<str>)]>,
    /// Arguments that a 2026-07-28 client mirrors into headers.
    pub params: Arc<[ParamHeader]>,
}

/// Reason why an entry of a backend's list is omitted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ItemError {
    /// The entry has no usable name or URI.
    #[error("an entry has no `{0}` that is a string")]
    NoKey(&'static str),
    /// The tool's `x-mcp-header` marks break the rules, so that no client may use it.
    #[error("tool `{0}` is left out: {1}")]
    BadHeaders(Box<str>, HeaderSchemaError),
    /// The URI has a control character, which servers interpret in different ways.
    #[error("an entry is left out: its `{0}` has a control character")]
    ControlInUri(&'static str),
}

impl Item {
    /// Reads one entry.
    ///
    /// # Errors
    /// Returns the reason why the entry cannot be offered to clients.
    pub fn read(kind: ListKind, raw: Bytes) -> Result<Self, ItemError> {
        let no_key = || ItemError::NoKey(kind.key());
        let key_span = json::member(&raw, kind.key()).ok_or_else(no_key)?;
        let key = json::string(key_span.of(&raw)).ok_or_else(no_key)?;
        let key: Box<str> = key.as_ref().into();
        if kind.style() == NameStyle::Uri && has_control(&key) {
            return Err(ItemError::ControlInUri(kind.key()));
        }
        let mut params: Arc<[ParamHeader]> = Arc::from([]);
        let mut apps: Box<[_]> = Box::default();
        if kind == ListKind::Tools {
            if let Some(schema) = json::member(&raw, "inputSchema") {
                let found =
                    param_headers(schema.of(&raw)).map_err(|error| ItemError::BadHeaders(key.clone(), error))?;
                params = found.into();
            }
            apps = APP_LINKS
                .iter()
                .filter_map(|path| json::path(&raw, path))
                .filter_map(|span| Some((span, json::string(span.of(&raw))?.as_ref().into())))
                .collect();
        }
        Ok(Self { key, raw, rank: 0, key_span, apps, params })
    }

    /// Returns the size of the entry in memory, with an allowance for its fields.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.raw.len() + self.key.len()
    }

    /// Returns the URIs of the app pages that a tool links to.
    pub fn apps(&self) -> impl Iterator<Item = &str> {
        self.apps.iter().map(|(_, uri)| &**uri)
    }

    /// Renders the entry under its exposed name, with its `ui://` links following a renamed resource.
    #[must_use]
    pub fn render(&self, exposed: Option<&str>, renamed_uri: impl Fn(&str) -> Option<Box<str>>) -> Bytes {
        let mut edits = Edits::new();
        if let Some(exposed) = exposed {
            edits.replace(self.key_span, json::quote(exposed));
        }
        for (span, uri) in &self.apps {
            if let Some(ours) = renamed_uri(uri) {
                edits.replace(*span, json::quote(&ours));
            }
        }
        edits.apply(&self.raw)
    }
}
