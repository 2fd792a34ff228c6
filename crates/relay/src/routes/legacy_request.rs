//! What legacy requests have in common: who sends them, which code they give, what their body says.

use crate::code::Code;
use crate::refusal::Refusal;
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
use signalbox_transport::router::{Problem, RoutedAnswer, RoutedBody, RoutedRequest};

/// The header that carries a code, so that none stands in an address.
const SESSION_CODE: &str = "x-session-code";
const WORKER_TOKEN: &str = "x-worker-token";
const WORKER_ID: &str = "x-worker-id";
/// The header by which a client tells its own calls and streams from those of others.
const CLIENT_ID: &str = "x-client-id";
/// The longest id of a client, in bytes.
const MAX_CLIENT_ID: usize = 128;

/// A refusal, with the code that it is about.
#[derive(Debug)]
pub struct Refused {
    refusal: Refusal,
    code: Option<String>,
    /// Why the body was not taken, in the words of whoever read it.
    problem: Option<Problem>,
}

impl Refused {
    /// A refusal that is about no session.
    pub fn of(refusal: Refusal) -> Self {
        Self { refusal, code: None, problem: None }
    }

    /// A refusal about the session of this code.
    pub fn about(refusal: Refusal, code: &Code) -> Self {
        Self { refusal, code: Some(code.expose().to_owned()), problem: None }
    }

    /// Why, in words that hold no code.
    pub fn words(&self) -> String {
        let (name, words) = (self.refusal.name().0, self.refusal.to_string());
        self.problem.as_ref().map_or_else(|| format!("{name}: {words}"), ToString::to_string)
    }

    /// The body of the answer.
    pub fn body(&self) -> serde_json::Value {
        self.refusal.body(self.code.as_deref())
    }

    /// The answer.
    pub fn answer(&self) -> RoutedAnswer {
        match &self.problem {
            Some(problem) => {
                let mut answer = problem.answer();
                let name = match problem.status() {
                    StatusCode::PAYLOAD_TOO_LARGE => "payload_too_large",
                    StatusCode::SERVICE_UNAVAILABLE => Refusal::NO_ROOM,
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

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self::of(refusal)
    }
}

/// What the client calls itself.
pub fn user_agent(asked: &RoutedRequest) -> &str {
    header(&asked.headers, "user-agent").unwrap_or_default()
}

/// A header, if it is text.
pub fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().filter(|text| !text.is_empty())
}

/// True for a request that only a page makes: it opens a session, answers, brings tools, or shows a worker's token.
pub fn is_page(asked: &RoutedRequest) -> bool {
    let own = ["/api/sessions", "/api/response", "/api/tools"].contains(&asked.path.as_str());
    own || asked.headers.contains_key(WORKER_TOKEN)
}

/// True if the sender shows a worker's token or id, so that it need not be known by its address.
pub fn shows_worker(headers: &HeaderMap) -> bool {
    [WORKER_TOKEN, WORKER_ID].iter().any(|name| headers.contains_key(*name))
}

/// The address that a request comes from, as a key.
pub fn address(asked: &RoutedRequest) -> String {
    address_key(asked.caller.identity().address.map(|address| address.ip()))
}

/// Who sends a request, by address and name: all that is known of legacy clients.
pub fn peer(asked: &RoutedRequest) -> String {
    format!("{} {}", address(asked), user_agent(asked))
}

/// Whose results a client of this request gets.
pub fn owner(relay: &Relay, asked: &RoutedRequest) -> ResultOwner {
    let client = header(&asked.headers, CLIENT_ID).filter(|id| id.len() <= MAX_CLIENT_ID);
    ResultOwner::of(&asked.caller, client, relay.account_gone(asked.caller.principal()))
}

/// The caller, who comes by the relay.
pub fn caller(asked: &RoutedRequest) -> Caller {
    Caller::new(Identity { transport: TRANSPORT, ..asked.caller.identity().clone() })
}

/// Refuses agents who have to prove who they are and have not.
pub fn proved(relay: &Relay, asked: &RoutedRequest) -> Result<(), Refused> {
    match relay.settings.proof_needed && asked.caller.identity().proof == Proof::Unproved {
        true => Err(Refused::of(Refusal::Unauthenticated)),
        false => Ok(()),
    }
}

/// The code in the header or the query, if there is one.
pub fn code_outside(asked: &RoutedRequest) -> Option<String> {
    let query = || asked.query.get("sessionCode").or_else(|| asked.query.get("code"));
    header(&asked.headers, SESSION_CODE).or_else(query).map(str::to_owned)
}

/// The session of this code.
pub async fn session(relay: &Relay, given: Option<String>, address: &str) -> Result<SessionRecord, Refused> {
    let given = given.filter(|text| !text.is_empty()).ok_or(Refused::of(Refusal::MissingSessionCode))?;
    let Ok(code) = Code::parse(&given) else {
        relay.guessed(address);
        return Err(Refused::of(Refusal::InvalidSessionCode));
    };
    relay.find(&code, address).await.map_err(|refusal| Refused::about(refusal, &code))
}

/// The token that a worker shows, in a header or in its body.
pub fn token<'a>(headers: &'a HeaderMap, body: Option<&'a str>) -> Option<&'a str> {
    header(headers, WORKER_TOKEN).or(body)
}

/// True if the worker has shown the token of the session. A wrong one is refused, and none where one was shown before.
pub async fn is_tokened(relay: &Relay, record: &SessionRecord, token: Option<&str>) -> Result<bool, Refused> {
    let refused = || Refused::about(Refusal::WorkerTokenNeeded, &record.code);
    match token {
        Some(token) if !record.is_token(token) => Err(refused()),
        Some(_) if record.tokened => Ok(true),
        Some(_) => {
            let noted = relay.store.set_tokened(&record.code, unix_millis()).await;
            noted.map_err(|error| Refused::of(relay.failed(&error)))?;
            Ok(true)
        }
        None if record.tokened => Err(refused()),
        None => Ok(false),
    }
}

/// The whole body, charged to whoever sent it for as long as any part of it is kept.
pub async fn whole(relay: &Relay, holder: &Principal, body: RoutedBody) -> Result<Bytes, Refused> {
    let broken = |error: BodyError| {
        if let (Some(limit), Some(gateway)) = (error.limit().filter(|limit| *limit == Limit::Memory), relay.gateway()) {
            gateway.counters.refused(limit);
        }
        Refused { refusal: Refusal::Internal, code: None, problem: Some(Problem::Body(error)) }
    };
    body.charged(relay.shares.request(holder)).await.map_err(broken)
}

/// A value that must be short. A longer one is not read, and is none of the kinds that anybody expects.
pub fn small_value(raw: &RawValue, most: usize) -> Value {
    match raw.get().len() <= most {
        true => serde_json::from_str(raw.get()).unwrap_or_default(),
        false => Value::Null,
    }
}

/// Bytes as JSON of this form. What is not JSON is told from what has another form.
pub fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Refused> {
    serde_json::from_slice(bytes).map_err(|error| {
        Refused::of(match error.classify() {
            serde_json::error::Category::Data => Refusal::Validation(error.to_string()),
            _ => Refusal::InvalidJson(error.to_string()),
        })
    })
}
