//! Conversations over HTTP, overheard. Each line of a dialogue is one step of one request; what is told follows.

use super::tests::shown;
use super::*;
use bytes::Bytes;
use signalbox_engine::{Caller, Fact};
use std::time::Instant;

struct Dialogue {
    tap: HttpTap,
    now: Instant,
}

impl Dialogue {
    fn new() -> Self {
        Self { tap: HttpTap::new("srv".into(), Caller::anonymous("http"), 100), now: Instant::now() }
    }

    fn step(&mut self, call: u64, step: HttpStep) -> Vec<String> {
        let mut out: Vec<Fact> = Vec::new();
        self.tap.take(self.now, HttpEvent { call, step }, &mut out);
        out.iter().map(shown).collect()
    }

    /// A request with this body.
    fn post(&mut self, call: u64, session: Option<&str>, body: &str) -> Vec<String> {
        self.post_to("/mcp", call, session, body)
    }

    fn post_to(&mut self, place: &str, call: u64, session: Option<&str>, body: &str) -> Vec<String> {
        let asked = ObservedRequest {
            session: session.map(Into::into),
            place: place.into(),
            endpoint: place == "/mcp",
            closes: false,
            head: None,
        };
        let mut told = self.step(call, HttpStep::Request(asked));
        told.extend(self.step(call, HttpStep::Body(TapSide::Client, Bytes::copy_from_slice(body.as_bytes()))));
        told.extend(self.step(call, HttpStep::BodyEnd { side: TapSide::Client, complete: true }));
        told
    }

    fn head(&mut self, call: u64, session: Option<&str>, status: u16, events: bool) -> Vec<String> {
        self.step(
            call,
            HttpStep::Response(ObservedResponse { session: session.map(Into::into), status, events, head: None }),
        )
    }

    fn say(&mut self, call: u64, text: &str) -> Vec<String> {
        self.step(call, HttpStep::Body(TapSide::Server, Bytes::copy_from_slice(text.as_bytes())))
    }

    fn done(&mut self, call: u64) -> Vec<String> {
        self.step(call, HttpStep::BodyEnd { side: TapSide::Server, complete: true })
    }

    /// A whole JSON answer.
    fn json(&mut self, call: u64, session: Option<&str>, body: &str) -> Vec<String> {
        let mut told = self.head(call, session, 200, false);
        told.extend(self.say(call, body));
        told.extend(self.done(call));
        told
    }

    fn end(&mut self) -> (Vec<String>, TapCounts) {
        let mut out = Vec::new();
        let counts = self.tap.end(self.now, &mut out);
        (out.iter().map(shown).collect(), counts)
    }
}

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const PONG: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

/// Later answers may come on the stream of another request.
/// Proves S-50.
#[test]
fn a_session_is_known_by_its_header_from_the_answer_that_gave_it() {
    let mut talk = Dialogue::new();
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#;
    let told = talk.post(1, None, hello);
    assert_eq!((told.len(), &*told[0]), (2, "session 2025-06-18 "));
    let told = talk.json(1, Some("abc"), r#"{"jsonrpc":"2.0","id":0,"result":{}}"#);
    assert_eq!((&*told[0], &*told[2]), ("session as abc 2025-06-18 ", "finished 1 initialize success 88+36"));
    // The answer comes on the stream of another request: a resumed one.
    assert!(talk.post(2, Some("abc"), PING)[0].starts_with("> 2 "));
    talk.head(2, None, 200, true);
    assert_eq!(talk.step(2, HttpStep::BodyEnd { side: TapSide::Server, complete: false }), Vec::<String>::new());
    talk.step(
        3,
        HttpStep::Request(ObservedRequest {
            session: Some("abc".into()),
            place: "/mcp".into(),
            endpoint: true,
            closes: false,
            head: None,
        }),
    );
    talk.head(3, None, 200, true);
    assert_eq!(talk.say(3, &format!(": hi\n\nid: 7\ndata: {PO}", PO = &PONG[..9])), Vec::<String>::new());
    let told = talk.say(3, &format!("{}\r\n\r\n", &PONG[9..]));
    assert!(told[0].starts_with("< 2 ") && told[1].starts_with("finished 2 ping success"), "{told:?}");
    // The session is closed by its client.
    talk.step(
        4,
        HttpStep::Request(ObservedRequest {
            session: Some("abc".into()),
            place: "/mcp".into(),
            endpoint: true,
            closes: true,
            head: None,
        }),
    );
    talk.head(4, None, 204, false);
    assert_eq!(talk.done(4), ["ended"]);
    let counts = talk.end().1;
    assert_eq!((counts.requests, counts.answered), (2, 2));
}

#[test]
fn requests_without_a_session_are_sessions_of_their_own_so_that_equal_ids_do_not_meet() {
    let mut talk = Dialogue::new();
    talk.post(1, None, PING);
    talk.post(2, None, PING);
    let told = talk.json(2, None, PONG);
    assert_eq!(told[1..], ["finished 2 ping success 40+36", "ended"], "numbers are those of all sessions together");
    // A client of the new era that goes away has cancelled its request.
    talk.head(1, None, 200, true);
    let told = talk.step(1, HttpStep::BodyEnd { side: TapSide::Server, complete: false });
    assert_eq!(told, ["finished 1 ping cancelled 40+0", "ended"]);
}

#[test]
fn a_request_that_is_refused_by_its_status_or_never_arrives_is_over() {
    let mut talk = Dialogue::new();
    talk.post(1, Some("abc"), PING);
    talk.head(1, None, 500, false);
    talk.say(1, "oh no");
    assert_eq!(talk.done(1), [r#"< 1 "oh no""#, "finished 1 ping http_error 40+0"]);
    talk.post(2, Some("abc"), PING);
    assert_eq!(talk.step(2, HttpStep::Failed), ["refused http_error", "finished 2 ping http_error 40+0"]);
}

#[test]
fn http_with_sse_is_followed_by_the_address_that_the_stream_gives_out() {
    let mut talk = Dialogue::new();
    talk.step(
        1,
        HttpStep::Request(ObservedRequest { place: "/sse".into(), endpoint: true, ..ObservedRequest::default() }),
    );
    talk.head(1, None, 200, true);
    assert_eq!(talk.say(1, "event: endpoint\ndata: /message?sessionId=x\n\n"), Vec::<String>::new());
    let told = talk.post_to("/message?sessionId=x", 2, None, PING);
    assert!(told[1].starts_with("> 1 "), "{told:?}");
    talk.head(2, None, 202, false);
    talk.say(2, "Accepted");
    assert_eq!(talk.done(2), Vec::<String>::new(), "beside the endpoint only messages are told");
    let told = talk.say(1, &format!("event: message\ndata: {PONG}\n\n"));
    assert!(told[0].starts_with("< 1 ") && told[1].starts_with("finished 1 ping success"), "{told:?}");
}

#[test]
fn what_is_no_message_is_told_at_the_endpoint_and_nowhere_else() {
    let mut talk = Dialogue::new();
    assert_eq!(talk.post(1, None, "not json")[1], r#"> - "not json""#);
    assert_eq!(talk.post_to("/token", 2, None, "client_secret=x"), Vec::<String>::new());
    assert_eq!(talk.json(2, None, r#"{"access_token":"x"}"#), Vec::<String>::new());
    let told = talk.post(3, None, &"y".repeat(90));
    assert_eq!(told.len(), 2);
    talk.head(3, None, 200, false);
    talk.say(3, &"z".repeat(80));
    let told = talk.say(3, &"z".repeat(80));
    assert_eq!(told.len(), 1, "a body that is too long is told in pieces: {told:?}");
    assert_eq!(talk.done(3).len(), 2);
    assert_eq!(talk.end().1.pieces, 2);
}

/// A session ends after the time-out, and beyond the bound the oldest one ends.
/// Proves SO-3.
#[test]
fn quiet_sessions_end_and_there_are_never_too_many() {
    let mut talk = Dialogue::new();
    talk.post(1, Some("a"), PING);
    talk.json(1, None, PONG);
    talk.now += SESSION_TIMEOUT;
    let mut out = Vec::new();
    talk.tap.tick(talk.now, &mut out);
    assert_eq!(out.iter().map(shown).collect::<Vec<_>>(), ["ended"]);
    for number in 0..=MAX_SESSIONS as u64 {
        let told = talk.post(2 * number, Some(&format!("s{number}")), PING);
        assert_eq!(told.iter().any(|line| line == "ended"), number == MAX_SESSIONS as u64, "{number}: {told:?}");
        talk.json(2 * number, None, PONG);
    }
}

/// The marks of the messages that a step tells.
fn carried(talk: &mut Dialogue, call: u64, step: HttpStep) -> Vec<String> {
    let mut out: Vec<Fact> = Vec::new();
    talk.tap.take(talk.now, HttpEvent { call, step }, &mut out);
    out.iter()
        .filter_map(|fact| match fact {
            Fact::Message(message) => {
                let carried = message.carried.as_deref()?;
                let http = carried.http.as_ref().map(|http| (http.method.clone(), http.url.clone(), http.status));
                Some(format!("{:?} {http:?}", carried.event_id))
            }
            Fact::Refused(refused) => Some(format!("refused {:?} {}", refused.status, refused.detail)),
            _ => None,
        })
        .collect()
}

fn asked() -> HttpStep {
    let head = http_heads::of_request("POST", "/mcp", &http::HeaderMap::new());
    HttpStep::Request(ObservedRequest {
        place: "/mcp".into(),
        endpoint: true,
        head: Some(head.into()),
        ..ObservedRequest::default()
    })
}

fn answered(status: u16, events: bool) -> HttpStep {
    let head = http_heads::of_answer(status, &http::HeaderMap::new());
    HttpStep::Response(ObservedResponse { session: None, status, events, head: Some(head.into()) })
}

/// Proves S-29 and S-71.
#[test]
fn heads_come_with_the_first_message_of_each_side_and_events_with_their_ids() {
    let mut talk = Dialogue::new();
    let body = |side, text: &str| HttpStep::Body(side, Bytes::copy_from_slice(text.as_bytes()));
    assert!(carried(&mut talk, 1, asked()).is_empty());
    carried(&mut talk, 1, body(TapSide::Client, r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#));
    assert_eq!(
        carried(&mut talk, 1, HttpStep::BodyEnd { side: TapSide::Client, complete: true }),
        [r#"None Some((Some("POST"), Some("/mcp"), None))"#]
    );
    carried(&mut talk, 1, answered(200, true));
    let events = concat!(
        "id: a1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n",
        "id: a2\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"
    );
    assert_eq!(
        carried(&mut talk, 1, body(TapSide::Server, events)),
        [r#"Some("a1") Some((None, None, Some(200)))"#, r#"Some("a2") None"#]
    );
}

#[test]
fn a_status_without_a_body_is_told_with_the_call_that_it_answers() {
    let mut talk = Dialogue::new();
    carried(&mut talk, 1, asked());
    carried(&mut talk, 1, HttpStep::Body(TapSide::Client, Bytes::from_static(PING.as_bytes())));
    carried(&mut talk, 1, HttpStep::BodyEnd { side: TapSide::Client, complete: true });
    carried(&mut talk, 1, answered(501, false));
    let told = carried(&mut talk, 1, HttpStep::BodyEnd { side: TapSide::Server, complete: true });
    assert_eq!(told, ["refused Some(501) POST /mcp", "None Some((None, None, Some(501)))"]);
}

/// A status of refusal without a body is recorded, one of success is not.
/// Proves S-29.
#[test]
fn an_answer_without_a_message_is_told_by_its_status_where_it_refuses() {
    let mut talk = Dialogue::new();
    let done = HttpStep::BodyEnd { side: TapSide::Server, complete: true };
    for (call, status, told) in [(1, 401, vec!["refused Some(401) POST /mcp"]), (2, 202, vec![])] {
        carried(&mut talk, call, asked());
        carried(&mut talk, call, answered(status, false));
        assert_eq!(carried(&mut talk, call, done.clone()), told, "{status}");
    }
}
