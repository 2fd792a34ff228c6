//! `/api/mcp`: the MCP endpoint of the relay, as a [`SecondaryEndpoint`] of the HTTP front end.

use crate::code::Code;
use crate::counters::RelayCounters;
use crate::link::{SESSION_EXPIRED, expired_data};
use crate::random;
use crate::refusal::{LegacyRefusal, retry_after};
use crate::relay::{Relay, TRANSPORT};
use crate::settings::{MigrationPhase, millis};
use crate::stray_codes::{has_stray_codes, without_stray_codes};
use crate::tools::{CONNECT, SESSION_CODE};
use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::json;
use signalbox_engine::rate::address_key;
use signalbox_engine::{Caller, Principal};
use signalbox_runtime::BoxFuture;
use signalbox_runtime::clock::unix_millis;
use signalbox_transport::http_front::{SecondaryEndpoint, SecondaryRequest, SecondarySession};
use signalbox_transport::router::RoutedAnswer;
use signalbox_wire::{Edits, Envelope, RawId, Revision, Span, json as wire_json, method};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Path of the endpoint.
pub const PATH: &str = "/api/mcp";
/// `_meta` member by which a request of a stateless revision may name the page, as an alternative to the argument.
pub const META_CODE: &str = "io.signalbox/sessionCode";
/// Server version reported to clients.
const VERSION: &str = "1.0.0";
/// JSON-RPC code for exceeded rate limits.
const RATE_LIMITED: i64 = -32429;
/// JSON-RPC code for failures of the relay itself.
const INTERNAL_ERROR: i64 = -32603;
/// JSON-RPC code for invalid session codes.
const INVALID_PARAMS: i64 = -32602;

/// MCP endpoint of a relay.
#[derive(Clone, Debug)]
pub struct RelayEntry(pub Arc<Relay>);

impl SecondaryEndpoint for RelayEntry {
    fn path(&self) -> &str {
        PATH
    }

    fn transport(&self) -> &'static str {
        TRANSPORT
    }

    fn is_own(&self, path: &str) -> bool {
        path == PATH || is_page(path) || crate::routes::is_legacy(path)
    }

    /// Adds the headers that the specification of the relay requires on every response.
    fn mark(&self, headers: &mut HeaderMap, took: Duration) {
        headers.insert(HeaderName::from_static("x-processing-time-ms"), HeaderValue::from(millis(took)));
        headers.insert(HeaderName::from_static("x-server-version"), HeaderValue::from_static(VERSION));
    }

    fn welcomes(&self, path: &str, headers: &HeaderMap) -> bool {
        let ours = self.is_own(path);
        let mut origins = headers.get_all(http::header::ORIGIN).iter();
        let (Some(origin), None) = (origins.next(), origins.next()) else { return false };
        ours && self.0.settings.origins.iter().any(|one| one.as_bytes().eq_ignore_ascii_case(origin.as_bytes()))
    }

    fn is_open(&self) -> bool {
        !self.0.settings.proof_needed
    }

    fn admit(&self, caller: &Caller) -> Result<(), Duration> {
        let key = key_of(caller);
        self.0.mcp_rate.take(&key, Instant::now()).inspect_err(|_| RelayCounters::add(&self.0.counts.rate_limited))
    }

    fn limited(&self, id: Option<&RawId>, wait: Duration) -> RoutedAnswer {
        rate_limited(id, "Rate limit exceeded", wait)
    }

    fn open(&self, caller: Caller, id: Option<RawId>) -> BoxFuture<Result<SecondarySession, RoutedAnswer>> {
        let relay = Arc::clone(&self.0);
        Box::pin(async move {
            let key = key_of(&caller);
            if let Err(wait) = relay.session_rate.take(&key, Instant::now()) {
                RelayCounters::add(&relay.counts.rate_limited);
                return Err(rate_limited(id.as_ref(), "Rate limit exceeded: too many new sessions", wait));
            }
            let refused = |refusal: LegacyRefusal| {
                rpc_error(refusal.name().1, id.as_ref(), INTERNAL_ERROR, &refusal.to_string(), None)
            };
            let session = random::uuid().map_err(|_| refused(LegacyRefusal::Internal))?;
            let new = relay.create(Some(&session)).await.map_err(refused)?;
            Ok(SecondarySession { principal: relay.session_target(&caller, &session, &new.record), session })
        })
    }

    fn principal_of(&self, caller: Caller, session: String) -> BoxFuture<Result<Option<Principal>, RoutedAnswer>> {
        let relay = Arc::clone(&self.0);
        Box::pin(async move {
            let found = relay.store.by_mcp(&session, unix_millis()).await.map_err(|error| relay.failed(&error));
            let Some(mut record) = found.map_err(|_| unavailable())? else { return Ok(None) };
            match relay.touch(&mut record).await {
                Ok(()) => Ok(Some(relay.session_target(&caller, &session, &record))),
                Err(LegacyRefusal::Internal) => Err(unavailable()),
                Err(_) => Ok(None),
            }
        })
    }

    fn named(&self, caller: Caller, message: Envelope) -> BoxFuture<Result<SecondaryRequest, RoutedAnswer>> {
        let relay = Arc::clone(&self.0);
        Box::pin(async move {
            let (code, message) = without_code(message);
            let message = without_stray_codes(message);
            let Some(code) = code else { return Ok(SecondaryRequest { principal: relay.nowhere(&caller), message }) };
            let id = message.id();
            // This revision has no -32002. Clients that look for it find it in the data, beside the standard code.
            let refused = |refusal: LegacyRefusal| match &refusal {
                LegacyRefusal::RateLimited { wait, .. } => rate_limited(id.as_ref(), &refusal.to_string(), *wait),
                _ => {
                    let original = refusal.name().0.to_ascii_uppercase();
                    let data = json!({"originalCode": original, "legacyCode": SESSION_EXPIRED});
                    let text = refusal.to_string();
                    rpc_error(StatusCode::NOT_FOUND, id.as_ref(), INVALID_PARAMS, &text, Some(&data))
                }
            };
            let key = key_of(&caller);
            let Ok(code) = Code::parse(&code) else {
                relay.guessed(&[&key]);
                let text = LegacyRefusal::InvalidSessionCode.to_string();
                return Err(rpc_error(StatusCode::BAD_REQUEST, id.as_ref(), INVALID_PARAMS, &text, None));
            };
            let record = relay.find(&code, &[&key]).await.map_err(refused)?;
            Ok(SecondaryRequest { principal: relay.code_target(&caller, &record), message })
        })
    }

    fn seen(&self, caller: &Caller, message: Envelope) -> Envelope {
        let code = if connects(&message) { argument(&message, "sessionId") } else { None };
        let Some((_, span, text)) = code else { return without_stray_codes(message) };
        let mut edits = Edits::new();
        edits.replace(span, wire_json::quote(&self.0.ticket(&text, &key_of(caller))));
        without_stray_codes(Envelope::parse(edits.apply(message.bytes())).unwrap_or(message))
    }

    /// Accepts batches for 2024-11-05 too: the original clients speak that revision and may send batches, as JSON-RPC
    /// 2.0 allows.
    fn takes_batches(&self, revision: Revision) -> bool {
        revision.batches() || revision == Revision::V2024_11_05
    }

    /// Returns true if a message of a batch must be handled on its own, because codes are removed from single messages
    /// only.
    fn stands_alone(&self, messages: &[u8]) -> bool {
        wire_json::elements(messages).any(|span| {
            let message = Envelope::parse(Bytes::copy_from_slice(span.of(messages)));
            message.is_ok_and(|message| connects(&message) || has_stray_codes(&message))
        })
    }

    fn gone(&self, id: Option<&RawId>, session: &str) -> RoutedAnswer {
        let data = expired_data(Some(session));
        rpc_error(StatusCode::NOT_FOUND, id, SESSION_EXPIRED, "Session expired", Some(&data))
    }

    fn left(&self, session: &str) {
        let (relay, session) = (Arc::clone(&self.0), session.to_owned());
        tokio::spawn(async move {
            if let Err(error) = relay.store.forget_mcp(&session).await {
                relay.failed(&error);
            }
        });
    }

    fn health(&self) -> RoutedAnswer {
        let phase = self.0.settings.phase;
        let body = json!({
            "status": "healthy",
            "server": {"name": "codap-mcp-server", "version": VERSION},
            "transport": "streamable-http",
            "phase": phase.word(),
            "features": phase.features(),
            "legacy": phase != MigrationPhase::McpOnly,
        });
        RoutedAnswer::json(StatusCode::OK, body.to_string())
    }
}

/// Returns the address of a caller, as a key of rate limits.
fn key_of(caller: &Caller) -> String {
    address_key(caller.identity().address.map(|address| address.ip()))
}

/// Refuses a caller that exceeds a rate limit.
fn rate_limited(id: Option<&RawId>, message: &str, wait: Duration) -> RoutedAnswer {
    let mut answer = rpc_error(StatusCode::TOO_MANY_REQUESTS, id, RATE_LIMITED, message, None);
    answer.headers.insert(RETRY_AFTER, retry_after(wait));
    answer
}

/// Answers that the session store is unreachable. The session may still exist, so this is not "not found".
fn unavailable() -> RoutedAnswer {
    let message = "The sessions cannot be reached now; try again";
    let mut answer = rpc_error(StatusCode::SERVICE_UNAVAILABLE, None, INTERNAL_ERROR, message, None);
    answer.headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    answer
}

/// Returns true for paths of pages and their assets.
fn is_page(path: &str) -> bool {
    path == "/relay" || path.starts_with("/relay/")
}

/// Returns true for a call of the tool that binds a session to a page.
fn connects(message: &Envelope) -> bool {
    let name = message.param("name").and_then(|span| wire_json::string(span.of(message.bytes())));
    message.method() == Some(method::TOOLS_CALL) && name.as_deref() == Some(CONNECT)
}

/// Finds a string member of the call's arguments. Returns the span of the arguments, the span of the value, and the
/// string.
fn argument(message: &Envelope, name: &str) -> Option<(Span, Span, String)> {
    let bytes = message.bytes();
    let object = message.param("arguments")?;
    let inner = wire_json::member(object.of(bytes), name)?;
    let span = Span { start: object.start + inner.start, end: object.start + inner.end };
    Some((object, span, wire_json::string(span.of(bytes))?.into_owned()))
}

/// Extracts the session code of a stateless request. Returns it with the request without it.
fn without_code(message: Envelope) -> (Option<String>, Envelope) {
    let bytes = message.bytes();
    let mut edits = Edits::new();
    let is_call = message.method() == Some(method::TOOLS_CALL);
    let in_arguments = if is_call { argument(&message, SESSION_CODE) } else { None };
    if let Some((object, _, _)) = &in_arguments {
        edits.remove_member(bytes, *object, SESSION_CODE);
    }
    let in_meta = message.param_meta(META_CODE).and_then(|span| wire_json::string(span.of(bytes)));
    if in_meta.is_some()
        && let Some(object) = message.param("_meta")
    {
        edits.remove_member(bytes, object, META_CODE);
    }
    let code = in_arguments.map(|(_, _, code)| code).or(in_meta.map(|code| code.into_owned()));
    if code.is_none() {
        return (None, message);
    }
    match Envelope::parse(edits.apply(bytes)) {
        Ok(rest) => (code, rest),
        Err(_) => (code, message),
    }
}

/// Builds a JSON-RPC error response.
fn rpc_error(
    status: StatusCode,
    id: Option<&RawId>,
    code: i64,
    message: &str,
    data: Option<&serde_json::Value>,
) -> RoutedAnswer {
    let mut error = json!({"code": code, "message": message});
    if let Some(data) = data {
        error["data"] = data.clone();
    }
    let id = id.map_or_else(|| "null".to_owned(), ToString::to_string);
    RoutedAnswer::json(status, format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::RelaySettings;
    use crate::store::memory::MemoryStore;

    fn entry() -> RelayEntry {
        let settings =
            RelaySettings { origins: vec!["https://codap.concord.org".to_owned()], ..RelaySettings::default() };
        RelayEntry(Relay::new(settings, Arc::new(MemoryStore::default())))
    }

    fn envelope(text: &str) -> Envelope {
        Envelope::parse(text.to_owned().into()).unwrap()
    }

    #[test]
    fn the_code_is_taken_out_of_a_request_before_anybody_sees_it() {
        let call = envelope(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":1,"sessionCode":"ABC123XY"},"_meta":{"io.signalbox/sessionCode":"ABC123XY","x":1}}}"#,
        );
        let (code, rest) = without_code(call);
        assert_eq!(code.as_deref(), Some("ABC123XY"));
        let expected = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":1},"_meta":{"x":1}}}"#;
        assert_eq!(rest.bytes(), expected);
        let list = envelope(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.signalbox/sessionCode":"ABC123XY"}}}"#,
        );
        let (code, rest) = without_code(list);
        assert_eq!((code.as_deref(), rest.bytes().windows(3).any(|part| part == b"XY\"")), (Some("ABC123XY"), false));
        let connect = envelope(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"connect_to_session","arguments":{"sessionId":"ABC123XY"}}}"#,
        );
        let entry = entry();
        let seen = entry.seen(&Caller::anonymous("http"), connect);
        let text = String::from_utf8_lossy(seen.bytes()).into_owned();
        assert!(!text.contains("ABC123XY"), "{text}");
        let ticket = argument(&seen, "sessionId").unwrap().2;
        assert_eq!(entry.0.redeem(&ticket).map(|given| given.code).as_deref(), Some("ABC123XY"));
        assert!(entry.0.redeem(&ticket).is_none(), "once");
    }

    /// Old clients give the code under other names, of this page or of another, and in lists.
    #[tokio::test]
    async fn codes_under_other_names_are_taken_out_too() {
        let (entry, secret) = (entry(), "ABC123XY");
        let call = |name: &str, arguments: &str| {
            envelope(&format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}}}"#
            ))
        };
        let given = [
            r#"{"sessionCode":"ABC123XY"}"#,
            r#"{"sessionCode":["ABC123XY"],"a":1}"#,
            r#"{"a":1,"code":"ABC123XY"}"#,
            r#"{"code":["x","ABC123XY"],"sessionCode":"ABC123XY","sessionId":"ABC123XY"}"#,
            r#"{"session\u0049d":"\u0041BC123XY"}"#,
        ];
        for arguments in given {
            let old = entry.seen(&Caller::anonymous("http"), call("own_get", arguments));
            let caller = Caller::anonymous("http");
            let modern =
                entry.named(caller, call("own_get", &arguments.replace(r#""sessionCode":"ABC123XY""#, r#""b":2"#)));
            for message in [old, modern.await.unwrap().message] {
                let text = String::from_utf8_lossy(message.bytes()).into_owned();
                assert!(!text.contains("BC123XY"), "{arguments}: {text}");
                assert_eq!(text.contains(r#""a":1"#), arguments.contains(r#""a":1"#), "{text}");
            }
            let connect = entry.seen(&Caller::anonymous("http"), call(CONNECT, arguments));
            assert!(!String::from_utf8_lossy(connect.bytes()).contains("BC123XY"), "{arguments}");
            assert!(
                entry.stands_alone(
                    format!("[{}]", String::from_utf8_lossy(call("own_get", arguments).bytes())).as_bytes()
                )
            );
        }
        for arguments in [r#"{"code":"print(1)","sessionId":7}"#, r#"{"other":"ABC123XY"}"#, r#"{"code":["no code"]}"#]
        {
            let kept = call("own_get", arguments);
            assert_eq!(entry.seen(&Caller::anonymous("http"), kept.clone()).bytes(), kept.bytes());
            assert!(!entry.stands_alone(format!("[{}]", String::from_utf8_lossy(kept.bytes())).as_bytes()), "{secret}");
        }
        let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.signalbox/sessionCode":"ABC123XY"}}}"#;
        assert!(
            !String::from_utf8_lossy(entry.seen(&Caller::anonymous("http"), envelope(list)).bytes()).contains(secret)
        );
    }

    /// Beside the arguments, in lists, and under names that only look alike.
    #[tokio::test]
    async fn codes_in_params_and_under_names_that_look_alike_are_taken_out() {
        let (entry, secret) = (entry(), "ABC123XY");
        let given = [
            r#""method":"tools/list","params":{"sessionCode":"ABC123XY"}"#,
            r#""method":"tools/list","params":{"cursor":"c","session_code":{"code":"ABC123XY"}}"#,
            r#""method":"tools/call","params":{"name":"t","sessionCode":"ABC123XY","arguments":{"a":1}}"#,
            r#""method":"tools/call","params":{"name":"t","arguments":{"session_id":"ABC123XY"}}"#,
            r#""method":"tools/call","params":{"name":"t","arguments":{"Code":["ABC123XY"]}}"#,
            r#""method":"tools/call","params":{"name":"t","arguments":{"session-id":{"value":"ABC123XY"}}}"#,
            r#""method":"tools/call","params":{"name":"connect_to_session","arguments":{"session_id":"ABC123XY"}}"#,
            r#""method":"prompts/get","params":{"name":"p","arguments":{"sessionCode":"ABC123XY"}}"#,
            r#""method":"own/method","params":{"arguments":{"code":"ABC123XY"}}"#,
            r#""method":"completion/complete","params":{"argument":{"name":"session_code","value":"ABC123XY"}}"#,
            r#""method":"completion/complete","params":{"context":{"arguments":{"sessionCode":"ABC123XY"}}}"#,
        ];
        for members in given {
            let message = || envelope(&format!(r#"{{"jsonrpc":"2.0","id":1,{members}}}"#));
            let modern = entry.named(Caller::anonymous("http"), message()).await.unwrap().message;
            for message in [entry.seen(&Caller::anonymous("http"), message()), modern] {
                let text = String::from_utf8_lossy(message.bytes()).into_owned();
                assert!(!text.contains(secret), "{members}: {text}");
            }
            assert!(entry.stands_alone(format!("[{}]", String::from_utf8_lossy(message().bytes())).as_bytes()));
        }
    }

    #[test]
    fn only_configured_origins_and_only_the_relays_paths_are_welcome() {
        let entry = entry();
        let from = |origin: &'static str, path: &str| {
            let headers = HeaderMap::from_iter([(http::header::ORIGIN, HeaderValue::from_static(origin))]);
            entry.welcomes(path, &headers)
        };
        for path in ["/api/mcp", "/api/sessions", "/api/request/ABCDEFGH", "/relay/worker.js"] {
            assert!(from("https://codap.concord.org", path) && !from("https://evil.example", path), "{path}");
        }
        for path in ["/mcp", "/api/v1/status", "/metrics", "/relayed"] {
            assert!(!from("https://codap.concord.org", path), "{path}");
        }
    }
}
