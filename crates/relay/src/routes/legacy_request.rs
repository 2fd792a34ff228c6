//! Common parts of legacy requests: the sender, the session code and the body.

use crate::code::Code;
use crate::refusal::LegacyRefusal;
use crate::relay::{Relay, TRANSPORT};
use crate::result_owner::ResultOwner;
use crate::session::SessionRecord;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use signalbox_engine::caller::Identity;
use signalbox_engine::rate::address_key;
use signalbox_engine::{Caller, Limit, Principal, Proof};
use signalbox_runtime::clock::unix_millis;
use signalbox_transport::read_body::BodyError;
use signalbox_transport::router::{RouteFault, RoutedAnswer, RoutedBody, RoutedRequest};

/// Header for the session code, which keeps it out of URLs.
const SESSION_CODE: &str = "x-session-code";
const WORKER_TOKEN: &str = "x-worker-token";
const WORKER_ID: &str = "x-worker-id";
/// Header by which a client distinguishes its own calls and streams from those of others.
const CLIENT_ID: &str = "x-client-id";
/// Maximum length of a client id, in bytes.
const MAX_CLIENT_ID: usize = 128;

/// Refusal together with the session code that it concerns.
#[derive(Debug)]
pub struct RouteRefusal {
    refusal: LegacyRefusal,
    code: Option<String>,
    /// Reason why the body was rejected, as given by its reader.
    problem: Option<RouteFault>,
}

impl RouteRefusal {
    /// Creates a refusal that concerns no session.
    pub fn of(refusal: LegacyRefusal) -> Self {
        Self { refusal, code: None, problem: None }
    }

    /// Creates a refusal that concerns the session of this code.
    pub fn about(refusal: LegacyRefusal, code: &Code) -> Self {
        Self { refusal, code: Some(code.expose().to_owned()), problem: None }
    }

    /// Describes the refusal without revealing a code.
    pub fn words(&self) -> String {
        let (name, words) = (self.refusal.name().0, self.refusal.to_string());
        self.problem.as_ref().map_or_else(|| format!("{name}: {words}"), ToString::to_string)
    }

    /// Returns the body of the response.
    pub fn body(&self) -> serde_json::Value {
        self.refusal.body(self.code.as_deref())
    }

    /// Returns the complete response.
    pub fn answer(&self) -> RoutedAnswer {
        match &self.problem {
            Some(problem) => {
                let mut answer = problem.answer();
                let name = match problem.status() {
                    StatusCode::PAYLOAD_TOO_LARGE => "payload_too_large",
                    StatusCode::SERVICE_UNAVAILABLE => LegacyRefusal::NO_ROOM,
                    _ => "validation_error",
                };
                let body = serde_json::json!({"error": name, "message": problem.to_string(), "code": name.to_ascii_uppercase()});
                answer.content = signalbox_transport::router::AnswerBody::Whole(body.to_string().into());
                answer
            }
            None => self.refusal.answer(self.code.as_deref()),
        }
    }
}

impl From<LegacyRefusal> for RouteRefusal {
    fn from(refusal: LegacyRefusal) -> Self {
        Self::of(refusal)
    }
}

/// Returns the `User-Agent` of the client.
pub fn user_agent(asked: &RoutedRequest) -> &str {
    header(&asked.headers, "user-agent").unwrap_or_default()
}

/// Returns a header if it is non-empty text.
pub fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().filter(|text| !text.is_empty())
}

/// Returns true for a request that only pages make: opening a session, answering, registering tools, or any with a
/// worker token.
pub fn is_page(asked: &RoutedRequest) -> bool {
    let own = ["/api/sessions", "/api/response", "/api/tools"].contains(&asked.path.as_str());
    own || asked.headers.contains_key(WORKER_TOKEN)
}

/// Returns true if the sender presents a worker token or id, and so need not be identified by its address.
pub fn shows_worker(headers: &HeaderMap) -> bool {
    [WORKER_TOKEN, WORKER_ID].iter().any(|name| headers.contains_key(*name))
}

/// Returns the address of the client, as a key.
pub fn address(asked: &RoutedRequest) -> String {
    address_key(asked.caller.identity().address.map(|address| address.ip()))
}

/// Identifies the sender by address and name, which is all that legacy clients reveal.
pub fn peer(asked: &RoutedRequest) -> String {
    format!("{} {}", address(asked), user_agent(asked))
}

/// Returns the owner of results for the client of this request.
pub fn owner(relay: &Relay, asked: &RoutedRequest) -> ResultOwner {
    let client = header(&asked.headers, CLIENT_ID).filter(|id| id.len() <= MAX_CLIENT_ID);
    ResultOwner::of(&asked.caller, client, relay.account_gone(asked.caller.principal()))
}

/// Returns the caller with the relay as its transport.
pub fn caller(asked: &RoutedRequest) -> Caller {
    Caller::new(Identity { transport: TRANSPORT, ..asked.caller.identity().clone() })
}

/// Refuses an unauthenticated agent where authentication is required.
pub fn proved(relay: &Relay, asked: &RoutedRequest) -> Result<(), RouteRefusal> {
    match relay.settings.proof_needed && asked.caller.identity().proof == Proof::Unproved {
        true => Err(RouteRefusal::of(LegacyRefusal::Unauthenticated)),
        false => Ok(()),
    }
}

/// Returns the code in the header or the query, if present.
pub fn code_outside(asked: &RoutedRequest) -> Option<String> {
    let query = || asked.query.get("sessionCode").or_else(|| asked.query.get("code"));
    header(&asked.headers, SESSION_CODE).or_else(query).map(str::to_owned)
}

/// Finds the session of this code.
pub async fn session(relay: &Relay, given: Option<String>, address: &str) -> Result<SessionRecord, RouteRefusal> {
    let given = given.filter(|text| !text.is_empty()).ok_or(RouteRefusal::of(LegacyRefusal::MissingSessionCode))?;
    let Ok(code) = Code::parse(&given) else {
        relay.guessed(&[address]);
        return Err(RouteRefusal::of(LegacyRefusal::InvalidSessionCode));
    };
    relay.find(&code, &[address]).await.map_err(|refusal| RouteRefusal::about(refusal, &code))
}

/// Returns the worker token from a header or the body.
pub fn token<'a>(headers: &'a HeaderMap, body: Option<&'a str>) -> Option<&'a str> {
    header(headers, WORKER_TOKEN).or(body)
}

/// Returns true if the worker presents the session's token. Refuses a wrong token, and a missing one once the token has
/// been presented.
pub async fn is_tokened(relay: &Relay, record: &SessionRecord, token: Option<&str>) -> Result<bool, RouteRefusal> {
    let refused = || RouteRefusal::about(LegacyRefusal::WorkerTokenNeeded, &record.code);
    match token {
        Some(token) if !record.is_token(token) => Err(refused()),
        Some(_) if record.tokened => Ok(true),
        Some(_) => {
            let noted = relay.store.set_tokened(&record.code, unix_millis()).await;
            noted.map_err(|error| RouteRefusal::of(relay.failed(&error)))?;
            Ok(true)
        }
        None if record.tokened => Err(refused()),
        None => Ok(false),
    }
}

/// Reads the whole body. It is charged to the sender for as long as any part of it lives.
pub async fn whole(relay: &Relay, holder: &Principal, body: RoutedBody) -> Result<Bytes, RouteRefusal> {
    let broken = |error: BodyError| {
        if let (Some(limit), Some(gateway)) = (error.limit().filter(|limit| *limit == Limit::Memory), relay.gateway()) {
            gateway.counters.refused(limit);
        }
        RouteRefusal { refusal: LegacyRefusal::Internal, code: None, problem: Some(RouteFault::Body(error)) }
    };
    body.charged(relay.shares.request(holder)).await.map_err(broken)
}

/// Parses a value that must be short. A longer one becomes null without being parsed.
pub fn small_value(raw: &RawValue, most: usize) -> Value {
    match raw.get().len() <= most {
        true => serde_json::from_str(raw.get()).unwrap_or_default(),
        false => Value::Null,
    }
}

/// Parses JSON of this form. Distinguishes invalid JSON from JSON of another form.
pub fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, RouteRefusal> {
    serde_json::from_slice(bytes).map_err(|error| {
        RouteRefusal::of(match error.classify() {
            serde_json::error::Category::Data => LegacyRefusal::Validation(error.to_string()),
            _ => LegacyRefusal::InvalidJson(error.to_string()),
        })
    })
}
