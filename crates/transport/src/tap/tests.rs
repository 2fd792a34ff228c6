//! Conversations overheard, as dialogues: `>` is what the client sends, `<` what the server sends, the rest is what is
//! told.

use super::*;
use bytes::Bytes;
use proptest::prelude::*;
use signalbox_engine::fact::{MessageFact, Point};
use signalbox_engine::{Caller, Fact, SessionKey};
use std::time::{Duration, Instant};

fn who() -> Who {
    Who { session: SessionKey(1), caller: Caller::local("ann", "stdio"), backend: "srv".into(), transport: "stdio" }
}

/// A fact in one line.
pub(super) fn shown(fact: &Fact) -> String {
    let number =
        |exchange: &Option<signalbox_engine::ExchangeId>| exchange.map_or_else(|| "-".to_owned(), |id| id.to_string());
    match fact {
        Fact::Session(session) => {
            let client = session.client.as_ref().map(|client| {
                let info =
                    client.info.as_ref().map_or_else(String::new, |info| String::from_utf8_lossy(info).into_owned());
                format!(" {} {info}", client.revision.as_str())
            });
            let external = session.external.as_ref().map(|name| format!(" as {name}"));
            format!("session{}{}", external.unwrap_or_default(), client.unwrap_or_default())
        }
        Fact::Lost(lost) => format!("lost {}", lost.reason),
        Fact::Refused(refused) => format!("refused {}", refused.reason),
        Fact::SessionEnded { .. } => "ended".to_owned(),
        Fact::Message(MessageFact { exchange, point, bytes, .. }) => {
            let arrow = if *point == Point::ClientIn { '>' } else { '<' };
            format!("{arrow} {} {:?}", number(exchange), String::from_utf8_lossy(bytes))
        }
        Fact::Finished(end) => {
            let subject = end.subject.as_ref().map(|subject| format!(" {subject}")).unwrap_or_default();
            format!(
                "finished {} {}{subject} {} {}+{}",
                end.exchange,
                end.method,
                end.outcome.label(),
                end.bytes_in,
                end.bytes_out
            )
        }
        Fact::Decision(decision) => {
            let (by, ruling) = decision.each().next().unwrap();
            format!("{by} {}: {}", ruling.verdict, ruling.detail)
        }
    }
}

struct Dialogue {
    tap: StdioTap,
    now: Instant,
}

impl Dialogue {
    fn new() -> Self {
        Self { tap: StdioTap::new(who(), 200), now: Instant::now() }
    }

    fn say(&mut self, side: TapSide, text: &str) -> Vec<String> {
        let mut out = Vec::new();
        self.tap.take(self.now, Chunk { side, bytes: Bytes::copy_from_slice(text.as_bytes()) }, &mut out);
        out.iter().map(shown).collect()
    }

    fn client(&mut self, text: &str) -> Vec<String> {
        self.say(TapSide::Client, text)
    }

    fn server(&mut self, text: &str) -> Vec<String> {
        self.say(TapSide::Server, text)
    }

    fn later(&mut self, by: Duration) -> Vec<String> {
        self.now += by;
        let mut out = Vec::new();
        self.tap.tick(self.now, &mut out);
        out.iter().map(shown).collect()
    }

    fn end(&mut self) -> (Vec<String>, TapCounts) {
        let mut out = Vec::new();
        let counts = self.tap.end(self.now, &mut out);
        (out.iter().map(shown).collect(), counts)
    }
}

/// Without the lines that repeat the message itself.
fn news(lines: &[String]) -> Vec<&str> {
    lines.iter().map(String::as_str).filter(|line| !line.starts_with(['>', '<'])).collect()
}

/// Proves S-49.
#[test]
fn a_session_is_introduced_and_its_calls_are_matched() {
    let mut talk = Dialogue::new();
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"c"}}}"#;
    let told = talk.client(&format!("{hello}\n"));
    assert_eq!(told[0], r#"session 2025-11-25 {"name":"c"}"#);
    assert!(told[1].starts_with("> 1 "), "{told:?}");
    // The server settles on an older revision.
    let told = talk.server("{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":\"2025-06-18\"}}\r\n");
    assert!(told[0].starts_with("< 1 ") && told[0].ends_with(r#"\r\n""#), "{told:?}");
    assert_eq!(news(&told), [r#"session 2025-06-18 {"name":"c"}"#, "finished 1 initialize success 115+68"]);
    let call = |id: &str| {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"t\"}}}}\n")
    };
    // The string and the number are two different ids, and answers come in any order.
    assert!(talk.client(&call("7"))[0].starts_with("> 2 "));
    assert!(talk.client(&call("\"7\""))[0].starts_with("> 3 "));
    let told = talk.server("{\"jsonrpc\":\"2.0\",\"id\":\"7\",\"error\":{\"code\":1,\"message\":\"\"}}\n");
    assert_eq!(news(&told), ["finished 3 tools/call t error 71+59"]);
    let told = talk.server("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"isError\":true}}\n");
    assert_eq!(news(&told), ["finished 2 tools/call t tool_error 69+51"]);
    let (told, counts) = talk.end();
    assert_eq!(told, ["ended"]);
    assert_eq!((counts.requests, counts.answered, counts.orphans, counts.unanswered), (3, 3, 0, 0));
}

/// Proves S-61.
#[test]
fn requests_of_the_server_have_ids_of_their_own() {
    let mut talk = Dialogue::new();
    talk.client("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n");
    let told = talk.server("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}\n");
    assert!(told[0].starts_with("< 2 "), "{told:?}");
    let told = talk.client("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"roots\":[]}}\n");
    assert!(told[0].starts_with("> 2 ") && told[1].starts_with("finished 2 roots/list success"), "{told:?}");
    let told = talk.server("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[]}}\n");
    assert!(told[0].starts_with("< 1 ") && told[1].starts_with("finished 1 tools/list success"), "{told:?}");
}

/// Proves S-53.
#[test]
fn what_cannot_be_read_is_told_as_it_is() {
    let mut talk = Dialogue::new();
    talk.client("");
    let told = talk.server("Server starting…\r\n\n{\"half\": \n[1, 2\n");
    let lines: Vec<&str> = told.iter().map(String::as_str).skip(1).collect();
    assert_eq!(lines, [r#"< - "Server starting…\r\n""#, r#"< - "\n""#, r#"< - "{\"half\": \n""#, r#"< - "[1, 2\n""#]);
    let long = format!("{{\"x\":\"{}\"}}\nok\n", "y".repeat(300));
    let told = talk.server(&long);
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(talk.server("no end").is_empty());
    let (told, counts) = talk.end();
    assert_eq!(told, [r#"< - "no end""#, "ended"]);
    assert_eq!((counts.messages, counts.pieces, counts.unread), (8, 2, 6));
}

#[test]
fn a_batch_is_told_once_and_each_of_its_requests_is_matched() {
    let mut talk = Dialogue::new();
    let told = talk.client(
        "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"},{\"a\":1}]\n",
    );
    assert_eq!((told.len(), &told[1][..4]), (2, "> - "));
    let told =
        talk.server("[{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}},{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]\n");
    assert_eq!(news(&told), ["finished 2 ping success 40+36", "finished 1 ping success 40+36"]);
    assert_eq!(talk.end().1.unread, 1);
}

/// Proves S-70.
#[test]
fn what_is_never_answered_is_given_up_and_a_late_answer_is_an_orphan() {
    let mut talk = Dialogue::new();
    talk.client("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
    talk.client("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n");
    let told =
        talk.client("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":2}}\n");
    assert!(told[0].starts_with("> 2 "), "{told:?}");
    assert_eq!(talk.later(CANCELLED_FOR), ["finished 2 ping cancelled 41+0"]);
    assert_eq!(talk.later(UNANSWERED_AFTER), ["finished 1 ping unanswered 41+0"]);
    let told = talk.server("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
    assert!(told[0].starts_with("< - ") && told.len() == 1, "{told:?}");
    // An id that is used again while its first request waits ends that one.
    talk.client("{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\n");
    let told = talk.client("{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\n");
    assert_eq!(news(&told), ["finished 3 ping unanswered 41+0"]);
    let (told, counts) = talk.end();
    assert_eq!(told, ["finished 4 ping unanswered 41+0", "ended"]);
    assert_eq!((counts.orphans, counts.unanswered), (1, 4));
}

#[test]
fn no_more_requests_are_remembered_than_the_bound() {
    let mut talk = Dialogue::new();
    for id in 0..=MAX_WAITING {
        let told = talk.client(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n"));
        let gone = if id == MAX_WAITING { vec!["finished 1 ping unanswered 41+0"] } else { vec![] };
        assert_eq!(news(&told).into_iter().filter(|line| !line.starts_with("session")).collect::<Vec<_>>(), gone);
    }
}

#[test]
fn since_2026_each_request_says_who_asks_and_it_is_told_when_it_changes() {
    let mut talk = Dialogue::new();
    let ask = |id: u32, name: &str| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\",\"params\":{{\"_meta\":{{\
             \"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
             \"io.modelcontextprotocol/clientInfo\":\"{name}\"}}}}}}\n"
        )
    };
    assert_eq!(talk.client(&ask(1, "a"))[0], "session 2026-07-28 \"a\"");
    assert_eq!(news(&talk.client(&ask(2, "a"))), Vec::<&str>::new());
    assert_eq!(news(&talk.client(&ask(3, "b"))), ["session 2026-07-28 \"b\""]);
}

#[test]
fn what_was_lost_is_told_where_it_was() {
    let mut talk = Dialogue::new();
    talk.client("{\"jsonrpc\":");
    let mut out = Vec::new();
    talk.tap.lost(talk.now, TapLoss { chunks: 2, bytes: 70 }, &mut out);
    let told: Vec<String> = out.iter().map(shown).collect();
    assert_eq!(
        told[1..],
        [r#"> - "{\"jsonrpc\":""#, "tap gap: 70 bytes in 2 chunks passed and were not recorded: queue_full"]
    );
}

proptest! {
    /// Proves S-63.
    #[test]
    fn whatever_chunks_the_bytes_come_in_the_recorded_bytes_are_those_that_passed(
        parts in proptest::collection::vec((any::<bool>(), proptest::collection::vec(any::<u8>(), 0..80), 0_u8..4), 0..60),
    ) {
        let mut tap = StdioTap::new(who(), 50);
        let (mut facts, mut sent) = (Vec::new(), [Vec::new(), Vec::new()]);
        for (from_client, mut bytes, ending) in parts {
            bytes.extend_from_slice([&b""[..], b"\n", b"\r\n", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"][usize::from(ending)]);
            sent[usize::from(from_client)].extend_from_slice(&bytes);
            let side = if from_client { TapSide::Client } else { TapSide::Server };
            tap.take(Instant::now(), Chunk { side, bytes: bytes.into() }, &mut facts);
        }
        let counts = tap.end(Instant::now(), &mut facts);
        let mut recorded = [Vec::new(), Vec::new()];
        let mut messages = 0;
        for fact in &facts {
            if let Fact::Message(MessageFact { point, bytes, .. }) = fact {
                recorded[usize::from(*point == Point::ClientIn)].extend_from_slice(bytes);
                messages += 1;
            }
        }
        prop_assert_eq!(recorded, sent);
        prop_assert_eq!(counts.messages, messages);
        prop_assert_eq!(counts.requests, counts.answered + counts.unanswered);
    }
}
