//! The calls of a tape, for exports that repeat them.

use super::Source;
use super::quoting::comment;
use crate::gather::{Gather, Piece};
use crate::story::Story;
use signalbox_engine::record::{Body, MessageEntry, SessionInfo, StoreError, TapeInfo, TapeKind};
use signalbox_wire::{Envelope, Era, Limits, Revision, header, json, meta, method, scan};
use std::collections::{HashMap, HashSet};

/// Address used if neither the user nor the tape names one.
const DEFAULT_URL: &str = "http://127.0.0.1:8080/mcp";

/// Facts that an export needs besides the tape.
#[derive(Clone, Debug)]
pub struct ExportTarget {
    /// HTTP address that the calls go to.
    pub url: String,
    /// Name by which the user refers to the tape, for tests that have it served.
    pub tape: String,
}

impl ExportTarget {
    /// Creates the target for a tape: the given address, else that of the recorded server, else that of a gateway with
    /// default settings.
    #[must_use]
    pub fn new(info: &TapeInfo, url: Option<String>, tape: String) -> Self {
        let recorded = || (info.kind == TapeKind::Proxy).then(|| info.target.clone());
        let url = url.or_else(recorded).filter(|url| is_url(url)).unwrap_or_else(|| DEFAULT_URL.to_owned());
        Self { url, tape }
    }
}

/// Returns true if calls can be sent to `url`: an HTTP address in printable ASCII.
#[must_use]
pub fn is_url(url: &str) -> bool {
    let place = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    place.is_some_and(|place| !place.is_empty() && place.bytes().all(|byte| byte.is_ascii_graphic()))
}

/// Next step of an export.
pub(super) enum Step {
    /// Opens a session of the old era.
    Open(Opening),
    /// Sends a request of the tape.
    Call(Box<Call>),
    /// Leaves a call out, for the stated reason.
    Left {
        /// Number of the call on the tape.
        number: u64,
        /// Reason for the omission.
        why: &'static str,
    },
}

/// A session that the export must open.
pub(super) struct Opening {
    /// Number of the session on the tape.
    pub(super) session: u64,
    /// Protocol revision to request.
    pub(super) revision: Revision,
}

impl Opening {
    /// Returns the `initialize` request. It declares no capabilities, since a script cannot answer questions of the
    /// server.
    pub(super) fn body(&self) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","id":"open-{}","method":"initialize","params":{{"protocolVersion":"{}","capabilities":{{}},"clientInfo":{{"name":"signalbox-export","version":"{}"}}}}}}"#,
            self.session,
            self.revision.as_str(),
            env!("CARGO_PKG_VERSION"),
        )
    }
}

/// Notification sent once a session is open.
pub(super) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A call to repeat.
pub(super) struct Call {
    /// Number of the call on the tape.
    pub(super) number: u64,
    /// Session of the call, if it belongs to the old era.
    pub(super) session: Option<u64>,
    pub(super) revision: Revision,
    pub(super) method: String,
    /// Request as the client sent it.
    pub(super) body: String,
    /// Complete message with which the client was answered.
    pub(super) answer: Option<String>,
    /// True if request or answer was redacted.
    pub(super) redacted: bool,
    /// Description for a comment: number, method and subject.
    pub(super) title: String,
}

impl Call {
    /// Returns the headers that depend on the call, except that of the session.
    pub(super) fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        if self.revision.protocol_header() {
            headers.push(("MCP-Protocol-Version", self.revision.as_str().to_owned()));
        }
        if self.revision.routing_headers() {
            headers.push(("Mcp-Method", encoded(&self.method)));
            let name = header::required_name(&self.method, self.member("params").unwrap_or_default().as_bytes());
            headers.extend(name.map(|name| ("Mcp-Name", encoded(&name))));
        }
        headers
    }

    /// Returns a member of the request, as JSON.
    pub(super) fn member(&self, name: &str) -> Option<&str> {
        part(&self.body, &[name])
    }

    /// Returns a member of the params, as JSON.
    pub(super) fn param(&self, name: &str) -> Option<&str> {
        part(&self.body, &["params", name])
    }

    /// Returns the result that the client received, as JSON.
    pub(super) fn result(&self) -> Option<&str> {
        part(self.answer.as_deref()?, &["result"])
    }

    /// Returns the code of the error that the client received.
    pub(super) fn error_code(&self) -> Option<i64> {
        part(self.answer.as_deref()?, &["error", "code"])?.parse().ok()
    }
}

/// Encodes the value of a header. Text that a program could mistake for a template is written in base64.
fn encoded(text: &str) -> String {
    let template = ["{{", "{%", "{#"].iter().any(|template| text.contains(template));
    if template { header::encode_base64(text) } else { header::encode_value(text).into_owned() }
}

fn part<'a>(json: &'a str, path: &[&str]) -> Option<&'a str> {
    json::path(json.as_bytes(), path).and_then(|span| json.get(span.range()))
}

/// Describes the origin of an export, for a comment.
pub(super) fn origin(info: &TapeInfo) -> String {
    let program = env!("CARGO_PKG_VERSION");
    comment(&format!(
        "Calls of tape {} ({} {}), written by signalbox {program}",
        info.id,
        info.kind.word(),
        info.target
    ))
}

/// Iterator over the steps that repeat the calls of a tape.
pub(super) struct Calls<'a> {
    pieces: Gather<'a>,
    revisions: HashMap<u64, Revision>,
    opened: HashSet<u64>,
    next: Option<Step>,
}

impl<'a> Calls<'a> {
    pub(super) fn new(source: Source<'a>) -> Self {
        let revision = |info: &SessionInfo| info.revision.as_deref().and_then(Revision::parse);
        let revisions = source.sessions.iter().filter_map(|(number, info)| Some((*number, revision(info)?)));
        Self { revisions: revisions.collect(), pieces: Gather::new(source.entries), opened: HashSet::new(), next: None }
    }

    fn step(&mut self, story: &Story<'_>) -> Option<Step> {
        let left = |why| Some(Step::Left { number: story.number, why });
        match story.method {
            // `Calls` opens sessions itself, so recorded `initialize` requests are dropped.
            method::INITIALIZE => return None,
            method::SUBSCRIPTIONS_LISTEN => return left("it listens until it is ended"),
            _ => {}
        }
        let request = story.request()?;
        if request.own {
            return None;
        }
        let Some(body) = text(request) else { return left("its request is not on the tape as one JSON-RPC message") };
        let own = json::path(body.as_bytes(), &["params", meta::META, meta::PROTOCOL_VERSION]);
        let own = own.and_then(|span| Revision::parse(&json::string(span.of(body.as_bytes()))?));
        let known = story.session.and_then(|session| self.revisions.get(&session).copied());
        let revision = own.or(known).unwrap_or(Revision::LATEST_LEGACY);
        let session = (revision.era() == Era::Legacy).then(|| story.session.unwrap_or_default());
        let subject = story.subject.map(|subject| format!(" {subject}")).unwrap_or_default();
        let answer = story.answer();
        let call = Step::Call(Box::new(Call {
            number: story.number,
            session,
            revision,
            method: story.method.to_owned(),
            answer: answer.and_then(text),
            redacted: request.redacted || answer.is_some_and(|answer| answer.redacted),
            title: comment(&format!("{}: {}{subject}", story.number, story.method)),
            body,
        }));
        match session.filter(|session| self.opened.insert(*session)) {
            Some(session) => {
                self.next = Some(call);
                Some(Step::Open(Opening { session, revision }))
            }
            None => Some(call),
        }
    }
}

impl Iterator for Calls<'_> {
    type Item = Result<Step, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(step) = self.next.take() {
            return Some(Ok(step));
        }
        loop {
            let entries = match self.pieces.next()? {
                Ok(Piece::Exchange(entries)) => entries,
                Ok(Piece::Loose(_)) => continue,
                Err(error) => return Some(Err(error)),
            };
            if let Some(step) = Story::new(&entries).and_then(|story| self.step(&story)) {
                return Some(Ok(step));
            }
        }
    }
}

/// Returns the body if it is one valid JSON-RPC message.
fn text(message: &MessageEntry) -> Option<String> {
    let Body::Whole(bytes) = &message.body else { return None };
    scan(bytes, &Limits::default()).ok()?;
    Envelope::parse(bytes.clone()).ok()?;
    String::from_utf8(bytes.to_vec()).ok()
}
