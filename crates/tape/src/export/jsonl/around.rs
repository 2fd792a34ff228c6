//! JSON forms of the entries that are not messages.

use super::jsonl_error::JsonlError;
use super::lines::is_default;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use signalbox_engine::fact::{HttpHead, TransportData};
use signalbox_engine::record::{BackendOffer, ClientEntry, RefusedEntry, RulesEntry, SessionInfo};
use std::sync::Arc;

/// Facts about a session, or about a caller without one.
#[derive(Serialize, Deserialize, Default)]
pub(super) struct SessionLine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) session: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    external: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    transport: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proof: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    claims: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    address: Option<String>,
}

impl SessionLine {
    pub(super) fn new(info: &SessionInfo) -> Self {
        Self {
            session: None,
            external: info.external.clone(),
            client: info.client.clone(),
            client_version: info.client_version.clone(),
            revision: info.revision.clone(),
            transport: info.transport.clone(),
            proof: info.proof.clone(),
            claims: info.claims.clone(),
            address: info.address.clone(),
        }
    }

    pub(super) fn numbered(number: u64, info: &SessionInfo) -> Self {
        Self { session: Some(number), ..Self::new(info) }
    }

    pub(super) fn info(self) -> SessionInfo {
        SessionInfo {
            external: self.external,
            client: self.client,
            client_version: self.client_version,
            revision: self.revision,
            transport: self.transport,
            proof: self.proof,
            claims: self.claims,
            address: self.address,
        }
    }
}

/// A caller without a session.
#[derive(Serialize, Deserialize)]
pub(super) struct ClientLine {
    number: u64,
    #[serde(flatten)]
    info: SessionLine,
}

impl ClientLine {
    pub(super) fn new(client: &ClientEntry) -> Self {
        Self { number: client.number, info: SessionLine::new(&client.info) }
    }

    pub(super) fn client(self) -> ClientEntry {
        ClientEntry { number: self.number, info: self.info.info() }
    }
}

/// Lists and properties that a backend offers.
#[derive(Serialize, Deserialize)]
pub(super) struct BackendLine {
    backend: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    view: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    hash: String,
    parts: Vec<PartLine>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    left: Vec<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    redacted: bool,
}

#[derive(Serialize, Deserialize)]
struct PartLine {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The content in base64, if it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

impl BackendLine {
    pub(super) fn new(seen: &BackendOffer) -> Self {
        let part = |(name, bytes): &(std::borrow::Cow<'static, str>, Bytes)| {
            let text = std::str::from_utf8(bytes).ok().map(str::to_owned);
            let base64 = text.is_none().then(|| STANDARD.encode(bytes));
            PartLine { name: name.to_string(), text, base64 }
        };
        Self {
            backend: seen.backend.to_string(),
            view: seen.view.clone(),
            revision: seen.revision.clone(),
            hash: seen.hash.clone(),
            parts: seen.parts.iter().map(part).collect(),
            left: seen.left.clone(),
            redacted: seen.redacted,
        }
    }

    pub(super) fn backend(self) -> Result<BackendOffer, JsonlError> {
        let part = |part: PartLine| -> Result<_, JsonlError> {
            let bytes = match (part.text, part.base64) {
                (Some(text), _) => Bytes::from(text),
                (None, Some(base64)) => Bytes::from(STANDARD.decode(base64).map_err(|_| JsonlError::Base64("base64"))?),
                (None, None) => return Err(JsonlError::EmptyPart),
            };
            Ok((part.name.into(), bytes))
        };
        Ok(BackendOffer {
            backend: self.backend.into(),
            view: self.view,
            revision: self.revision,
            hash: self.hash,
            parts: self.parts.into_iter().map(part).collect::<Result<_, _>>()?,
            left: self.left,
            redacted: self.redacted,
        })
    }
}

/// The rules in force.
#[derive(Serialize, Deserialize)]
pub(super) struct RulesLine {
    hash: String,
    text: String,
    #[serde(default, skip_serializing_if = "is_default")]
    redacted: bool,
}

impl RulesLine {
    pub(super) fn new(rules: &RulesEntry) -> Self {
        Self { hash: rules.hash.clone(), text: rules.text.clone(), redacted: rules.redacted }
    }

    pub(super) fn rules(self) -> RulesEntry {
        RulesEntry { hash: self.hash, text: self.text, redacted: self.redacted }
    }
}

/// A request that was refused before it became an exchange.
#[derive(Serialize, Deserialize)]
pub(super) struct RefusedLine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    reason: String,
    detail: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client: Option<u64>,
}

impl RefusedLine {
    pub(super) fn new(refused: &RefusedEntry) -> Self {
        Self {
            status: refused.status,
            reason: refused.reason.to_string(),
            detail: refused.detail.clone(),
            client: refused.client,
        }
    }

    pub(super) fn refused(self) -> RefusedEntry {
        let (status, client) = (self.status, self.client);
        RefusedEntry { status, reason: self.reason.into(), detail: self.detail, client }
    }
}

/// Head of an HTTP request or response.
#[derive(Serialize, Deserialize)]
pub(super) struct HttpLine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    headers: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "is_default")]
    redacted: bool,
}

impl HttpLine {
    pub(super) fn new(http: &HttpHead) -> Self {
        Self {
            method: http.method.clone(),
            url: http.url.clone(),
            status: http.status,
            headers: http.headers.clone(),
            redacted: http.redacted,
        }
    }

    fn head(self) -> HttpHead {
        let Self { method, url, status, headers, redacted } = self;
        HttpHead { method, url, status, headers, redacted }
    }
}

/// Returns the carrier of a message, or `None` if neither event id nor HTTP head is known.
pub(super) fn carried(event_id: Option<String>, http: Option<HttpLine>) -> Option<Arc<TransportData>> {
    let there = event_id.is_some() || http.is_some();
    there.then(|| Arc::new(TransportData { event_id: event_id.map(Into::into), http: http.map(HttpLine::head) }))
}
