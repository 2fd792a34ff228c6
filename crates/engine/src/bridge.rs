//! The bridge: translation of messages between two ends that speak different revisions of MCP.
//!
//! Each concern has a file: capabilities, content of results, errors, lists, questions to the client, tasks. This file
//! translates requests ([`request`]) and answers ([`answer`]) and decides which of the others are needed.
//!
//! ```text
//! client ─► backend      request                              answer
//! new era ─► old era     loses its client description         content, errors and tasks in the form of the new era
//! old era ─► new era     gets a client description            content and errors in the form of the client's revision
//! old ─► newer old       is unchanged                         content that the client's revision lacks is rewritten
//! otherwise              is unchanged                         is unchanged
//! ```
//!
//! One answer may not be the end of a call ([`CallProgress`]). Flows of several messages have a machine of their own:
//!
//! ```text
//!               ┌─ Whole ─► the client is answered
//! answer ───────┼─ Input ─► front::rounds asks an old client the questions of a new backend
//!               └─ Task ──► front::polling waits for a new backend's task; bridge::hosted keeps an old backend's
//!
//! an old backend asks in the middle of a call ─► bridge::bridged_call parks the call until its new client answers
//! ```
//!
//! Invariants:
//!
//! - Between equal revisions nothing changes, except that a trace adds its members to `_meta` of a request.
//! - Translations are functions from bytes to bytes or to [`Edits`]. Members they do not name stay byte for byte.
//! - A feature that a revision lacks is rewritten into one that it has and reported by name, or refused by
//!   [`not_bridged`], which names the feature and both revisions.
//! - A later round of a call that an old backend no longer works on is refused: a call must not run twice.
//!
//! The bridge must never decide the destination of a message. Each of its machines holds one call or one task, and they
//! share nothing.

pub mod bridged_call;
pub mod capabilities;
pub mod content;
pub mod digest;
pub mod errors;
pub mod hosted_task;
pub mod listing;
pub(crate) mod object;
pub mod questions;
pub mod report;
mod task_state;
pub mod tasks;
pub mod ticket;

use crate::exchange::Call;
use crate::fault::{Fault, FaultKind};
use crate::log_level::LogLevel;
use crate::profile::ServerProfile;
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, Era, Kind, Revision, Span, json, meta, method};

/// Extension of the new era that lets a server answer a call with a task.
pub use capabilities::TASKS_EXTENSION as TASKS;

/// Features of a backend of the new era that the bridge checks for every call.
#[derive(Copy, Clone, Default, Debug)]
pub struct BackendFeatures {
    /// True if the backend sends log messages.
    pub logging: bool,
    /// True if the backend may answer a call with a task.
    pub tasks: bool,
}

impl BackendFeatures {
    /// Reads the features from the backend's profile.
    #[must_use]
    pub fn read(profile: &ServerProfile) -> Self {
        Self { logging: profile.has(&["logging"]), tasks: profile.has(&["extensions", TASKS]) }
    }
}

/// Progress of a call with one answer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum CallProgress {
    /// The call is complete.
    Whole,
    /// The backend wants something from the client first (new era).
    Input,
    /// The backend created a task for the call.
    Task,
}

/// Returns true for the methods whose answer may be a question in the new era.
#[must_use]
pub fn may_ask(name: &str) -> bool {
    matches!(name, method::TOOLS_CALL | method::PROMPTS_GET | method::RESOURCES_READ)
}

/// Translates a request to the era of the connection it leaves by.
///
/// # Errors
/// Returns a fault that names the feature that cannot be carried.
pub fn request(call: &mut Call, to: Revision, offered: BackendFeatures, our_info: &str) -> Result<(), Fault> {
    if call.era == to.era() {
        carry_trace(call);
        return Ok(());
    }
    if method::intern(&call.method).is_some() && !method::exists(&call.method, to) {
        return Err(not_bridged(&call.method, call.client.revision, to));
    }
    match to.era() {
        Era::Modern => describe(call, to, offered, our_info),
        // A parked call is resumed elsewhere and never gets here; any other must not be run as a new one.
        Era::Legacy if call.round.is_some() => {
            let text = "the call that waited for this input is over; it is not run a second time";
            return Err(Fault::new(FaultKind::InvalidParams, text));
        }
        Era::Legacy => {
            plain(call);
            carry_trace(call);
        }
    }
    Ok(())
}

/// Adds the trace to `_meta` of a traced call. A call that is made to describe itself gets it there.
fn carry_trace(call: &mut Call) {
    if let Some(told) = &call.trace {
        told.write(&call.envelope, &mut call.edits);
    }
}

/// Revisions between which a message is translated.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RevisionPair {
    /// Revision of the client.
    pub client: Revision,
    /// Revision of the backend's connection.
    pub backend: Revision,
}

/// Translates an answer of a backend to the revision of the client, and returns the progress of the call. `rewritten`
/// collects the names of features that the client's revision lacks.
///
/// # Errors
/// Returns a fault that names the feature that cannot be carried.
pub fn answer(
    method: &str,
    revisions: RevisionPair,
    message: &Envelope,
    edits: &mut Edits,
    rewritten: &mut Vec<&'static str>,
) -> Result<CallProgress, Fault> {
    let RevisionPair { client, backend } = revisions;
    if message.kind() == Kind::Error {
        match (client.era(), backend.era()) {
            (Era::Modern, Era::Legacy) => errors::to_modern(method, message, edits),
            (Era::Legacy, Era::Modern) => errors::to_legacy(method, message, edits),
            _ => {}
        }
        return Ok(CallProgress::Whole);
    }
    match (client.era(), backend.era()) {
        (Era::Modern, Era::Legacy) => match made_task(method, message) {
            Some((span, task)) => {
                edits.replace(span, task);
                return Ok(CallProgress::Task);
            }
            None => content::upgrade(method, message, edits),
        },
        (Era::Legacy, Era::Modern) => {
            let found = content::ResultMembers::read(message);
            match found.result_type(message).as_deref() {
                None | Some("complete") => *rewritten = content::fit(method, client, message, &found, edits),
                Some("input_required") => return Ok(CallProgress::Input),
                Some("task") => return Ok(CallProgress::Task),
                Some(other) => return Err(not_bridged(&format!("a result of type `{other}`"), client, backend)),
            }
        }
        (Era::Legacy, Era::Legacy) if client < backend => {
            *rewritten = content::downgrade(method, client, message, edits);
        }
        _ => {}
    }
    Ok(CallProgress::Whole)
}

/// Adds `serverInfo` to a result, as every result of the new era should have it.
pub fn sign(message: &Envelope, edits: &mut Edits, server: &[u8]) {
    let Some(whole) = message.result_span() else { return };
    let result = whole.of(message.bytes());
    match json::member(result, "_meta") {
        Some(own) if json::member(own.of(result), meta::SERVER_INFO).is_none() => {
            edits.set_member(message.bytes(), own.shift(whole.start), meta::SERVER_INFO, server);
        }
        Some(_) => {}
        None => {
            let mut own = Vec::with_capacity(server.len() + 48);
            write_object(&mut own, &[(meta::SERVER_INFO, server)]);
            edits.set_member(message.bytes(), whole, "_meta", &own);
        }
    }
}

/// Completes a result that a rule, a webhook or a person wrote: adds the missing members that 2026-07-28 requires.
/// Members that are present stay.
#[must_use]
pub fn complete_result(method: &str, result: &Bytes) -> Bytes {
    let start = json::skip_whitespace(result, 0);
    let kind = json::member(result, "resultType");
    let other = kind.is_some_and(|span| !json::key_eq(span.of(result), "complete"));
    if other || result.get(start) != Some(&b'{') {
        return result.clone();
    }
    let whole = Span::new(start, result.trim_ascii_end().len());
    let mut edits = Edits::new();
    let mut add = |key: &str, value: &[u8]| {
        if json::member(result, key).is_none() {
            edits.set_member(result, whole, key, value);
        }
    };
    add("resultType", b"\"complete\"");
    if content::has_cache_terms(method) {
        add("ttlMs", b"0");
        add("cacheScope", b"\"private\"");
    }
    edits.apply(result)
}

/// Returns the fault for a call during which an old backend asks something its client did not declare. `None` for
/// roots: servers ask for them in passing, and the call need not fail.
#[must_use]
pub fn undeclared(method: &str, params: &[u8]) -> Option<Fault> {
    if !matches!(method, method::SAMPLING_CREATE_MESSAGE | method::ELICITATION_CREATE) {
        return None;
    }
    let text = format!("the backend asks `{method}`, for which the client declared no capability");
    let required = capabilities::required(method, params);
    Some(Fault::new(FaultKind::MissingCapability, text).with_raw("requiredCapabilities", required))
}

/// Returns the refusal of a feature that the two revisions do not share.
#[must_use]
pub fn not_bridged(feature: &str, from: Revision, to: Revision) -> Fault {
    let text = format!("{feature} cannot be carried between revisions {} and {}", from.as_str(), to.as_str());
    Fault::new(FaultKind::NotBridged, text)
        .with_str("feature", feature)
        .with_str("client", from.as_str())
        .with_str("server", to.as_str())
}

/// Returns the task that an old backend created for a call, in the form of the new era, and the span it replaces.
fn made_task(name: &str, message: &Envelope) -> Option<(Span, Bytes)> {
    let result = message.result().filter(|_| name == method::TOOLS_CALL)?;
    json::member(result, "task").filter(|_| json::member(result, "content").is_none())?;
    Some((message.result_span()?, tasks::create_to_modern(result)?))
}

/// Returns true if a client of the new era knows tasks.
#[must_use]
pub fn knows_tasks(capabilities: &[u8]) -> bool {
    json::path(capabilities, &["extensions", TASKS]).is_some_and(|span| span.of(capabilities).starts_with(b"{"))
}

/// Adds the members with which a request of the new era describes its client.
fn describe(call: &mut Call, to: Revision, offered: BackendFeatures, our_info: &str) {
    let base = call.envelope.bytes();
    let version = json::quote(to.as_str());
    let info = call.client.info.as_deref().unwrap_or(our_info.as_bytes());
    let level = offered.logging.then(|| json::quote(call.log_level.unwrap_or(LogLevel::Info).as_str()));
    let mut members: Vec<(&str, &[u8])> = vec![
        (meta::PROTOCOL_VERSION, version.as_bytes()),
        (meta::CLIENT_CAPABILITIES, call.client.modern_capabilities(offered.tasks).as_bytes()),
        (meta::CLIENT_INFO, info),
    ];
    if let Some(level) = &level {
        members.push((meta::LOG_LEVEL, level.as_bytes()));
    }
    let told = call.trace.as_ref().map_or_else(Vec::new, |told| told.members());
    members.extend(told.iter().map(|(key, value)| (*key, &value[..])));
    let Some(params) = call.envelope.params_span() else {
        let mut whole = b"{\"_meta\":".to_vec();
        write_object(&mut whole, &members);
        whole.push(b'}');
        return call.edits.set_member(base, call.envelope.object_span(), "params", &whole);
    };
    let (mut own, mut any) = (None, false);
    for member in json::members(params.of(base)) {
        let key = member.key.of(params.of(base));
        any = true;
        if json::key_eq(key, meta::META) {
            own = Some(member.value.shift(params.start));
        } else if json::key_eq(key, "task") {
            call.edits.remove_member(base, params, "task");
        }
    }
    if let Some(own) = own {
        for (key, value) in members {
            call.edits.set_member(base, own, key, value);
        }
        if let Some(told) = &call.trace {
            told.remove_state(base, own, &mut call.edits);
        }
        return;
    }
    let mut text = Vec::with_capacity(320);
    if !any {
        write_object(&mut text, &members);
        return call.edits.set_member(base, params, meta::META, &text);
    }
    // Insert before the first member: finding the last one would take another walk.
    json::write_quoted(&mut text, meta::META);
    text.push(b':');
    write_object(&mut text, &members);
    text.push(b',');
    call.edits.insert(params.start + 1, text);
}

fn write_object(out: &mut Vec<u8>, members: &[(&str, &[u8])]) {
    out.push(b'{');
    for (index, (key, value)) in members.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        json::write_quoted(out, key);
        out.push(b':');
        out.extend_from_slice(value);
    }
    out.push(b'}');
}

/// Removes the members with which a request of the new era describes its client; an old server got them at
/// `initialize`.
fn plain(call: &mut Call) {
    let base = call.envelope.bytes();
    let Some(params) = call.envelope.params_span() else { return };
    let Some(own) = json::member(params.of(base), "_meta") else { return };
    let own = own.shift(params.start);
    for key in [meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES, meta::CLIENT_INFO, meta::LOG_LEVEL] {
        call.edits.remove_member(base, own, key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_up_result_says_what_it_is_and_how_long_it_may_be_kept_unless_it_does_already() {
        for (method, result, expected) in [
            ("tools/call", "{}", r#"{"resultType":"complete"}"#),
            ("tools/call", " {\"content\":[]} ", " {\"content\":[],\"resultType\":\"complete\"} "),
            ("tools/call", r#"{"resultType":"complete"}"#, r#"{"resultType":"complete"}"#),
            (
                "resources/read",
                r#"{"contents":[],"ttlMs":5}"#,
                r#"{"contents":[],"ttlMs":5,"resultType":"complete","cacheScope":"private"}"#,
            ),
            ("resources/read", r#"{"resultType":"input_required"}"#, r#"{"resultType":"input_required"}"#),
            (
                "tools/list",
                r#"{"tools":[]}"#,
                r#"{"tools":[],"resultType":"complete","ttlMs":0,"cacheScope":"private"}"#,
            ),
            ("tools/call", "[]", "[]"),
        ] {
            assert_eq!(complete_result(method, &Bytes::from_static(result.as_bytes())), expected, "{method} {result}");
        }
    }
}
