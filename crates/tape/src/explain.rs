//! Explains one exchange to the user: its messages, the decisions on it, and its outcome.

use crate::Bodies;
use crate::marks;
use crate::times::{millis, rfc3339};
use bytes::Bytes;
use signalbox_engine::fact::Point;
use signalbox_engine::record::{Body, Content, DecisionEntry, Entry, FinishedEntry, LostEntry, MessageEntry};
use signalbox_wire::printable::is_harmful;
use std::fmt::Write;

/// Maximum number of bytes of a message that are shown.
const MAX_SHOWN: usize = 4_096;
/// Number of bytes shown on each side of a difference.
const AROUND: usize = 24;

/// Explains one exchange from its entries: incoming messages, decisions with their inputs, outgoing messages, the
/// difference of each image from the one before it, and the outcome.
#[must_use]
pub fn explain(entries: &[Entry]) -> String {
    explain_part(entries, has_reached(entries))
}

/// Explains an exchange of which only some entries are at hand; `reached` tells whether it reached a backend.
#[must_use]
pub fn explain_part(entries: &[Entry], reached: bool) -> String {
    let mut bodies = Bodies::default();
    let entries: Vec<Entry> = entries.iter().map(|entry| bodies.whole(entry.clone())).collect();
    let mut out = String::new();
    let Some(first) = entries.first() else { return "The tape has no entries for it.\n".to_owned() };
    title(&mut out, first, &entries);
    let mut images: [Option<Bytes>; 2] = [None, None];
    for entry in &entries {
        let when = millis(entry.at.saturating_sub(first.at));
        match &entry.content {
            Content::Message(message) => {
                image(&mut out, &when, message, &mut images[usize::from(toward_client(message.point))]);
            }
            Content::Decisions(list) => list.iter().for_each(|decision| tell_decision(&mut out, &when, decision)),
            Content::Finished(finished) => {
                let _ = writeln!(out, "{when:>14}  ended: {}", shown(&finished.outcome));
            }
            Content::Gap(gap) => {
                let _ = writeln!(out, "{when:>14}  {} facts are missing here: {}", gap.facts, shown(&gap.reason));
            }
            Content::Lost(lost) => tell_lost(&mut out, &when, lost),
            Content::Refused(refused) => {
                let _ = writeln!(out, "{when:>14}  {}", shown(&marks::refused(refused)));
            }
            Content::Session(_)
            | Content::SessionEnded
            | Content::Client(_)
            | Content::Backend(_)
            | Content::Rules(_) => {}
        }
    }
    outcome(&mut out, &entries, reached);
    out
}

/// Returns true if these entries of an exchange show that it reached a backend.
#[must_use]
pub fn has_reached(entries: &[Entry]) -> bool {
    let Some(finished) = ending(entries) else { return false };
    entries.iter().any(|entry| match &entry.content {
        Content::Message(message) => reached(message, &finished.outcome),
        _ => false,
    })
}

fn ending(entries: &[Entry]) -> Option<&FinishedEntry> {
    entries.iter().rev().find_map(|entry| match &entry.content {
        Content::Finished(finished) => Some(finished),
        _ => None,
    })
}

fn title(out: &mut String, first: &Entry, entries: &[Entry]) {
    let named = entries.iter().find_map(|entry| match &entry.content {
        Content::Message(MessageEntry { method: Some(method), subject, .. }) => Some((method, subject)),
        Content::Finished(FinishedEntry { method, subject, .. }) => Some((method, subject)),
        _ => None,
    });
    let number = first
        .exchange
        .map_or_else(|| "Messages outside any exchange".to_owned(), |number| format!("Exchange {number}"));
    let session = first.session.map_or_else(|| "no session".to_owned(), |number| format!("session {number}"));
    let _ = write!(out, "{number}, {session}, for {}", shown(&first.principal));
    if let Some((method, subject)) = named {
        let subject = subject.as_ref().map(|subject| format!(" {}", shown(subject))).unwrap_or_default();
        let _ = write!(out, ": {}{subject}", shown(method));
    }
    let _ = writeln!(out, "\nBegan {}\n", rfc3339(first.at));
}

fn tell_lost(out: &mut String, when: &str, lost: &LostEntry) {
    let (number, way, reason) = (lost.number, lost.point.words(), shown(&lost.reason));
    let _ = writeln!(out, "{when:>14}  message {number} ({way}) did not arrive after all: {reason}");
}

fn image(out: &mut String, when: &str, message: &MessageEntry, before: &mut Option<Bytes>) {
    let backend = message.backend.as_ref().map(|name| format!(" ({})", shown(name))).unwrap_or_default();
    let code = message.error_code.map(|code| format!(" {code}")).unwrap_or_default();
    let (way, kind) = (message.point.words(), message.kind.word());
    let _ = write!(out, "{when:>14}  {way}{backend}: {kind}{code}, {} bytes", message.length);
    for mark in marks::of(message) {
        let _ = write!(out, ", {}", shown(&mark));
    }
    match (&message.body, &before) {
        (Body::Whole(bytes), Some(old)) if bytes == old => out.push_str(", unchanged\n"),
        (Body::Whole(bytes), Some(old)) if !first_point(message.point) => {
            out.push_str(", changed:\n");
            difference(out, old, bytes);
        }
        (Body::Whole(bytes), _) => {
            out.push_str(":\n");
            line(out, "", bytes);
        }
        _ => out.push_str(", not kept\n"),
    }
    if let Body::Whole(bytes) = &message.body {
        *before = Some(bytes.clone());
    }
}

/// Writes the part that differs, with a little context.
fn difference(out: &mut String, old: &[u8], new: &[u8]) {
    let prefix = old.iter().zip(new).take_while(|(one, other)| one == other).count();
    let most = old.len().min(new.len()) - prefix;
    let suffix = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(one, other)| one == other).count();
    for (sign, text) in [("- ", old), ("+ ", new)] {
        let from = prefix.saturating_sub(AROUND);
        let to = (text.len() - suffix + AROUND).min(text.len());
        let head = if from > 0 { "…" } else { "" };
        let tail = if to < text.len() { "…" } else { "" };
        let part = text.get(from..to).unwrap_or_default();
        let marked = [head.as_bytes(), part, tail.as_bytes()].concat();
        line(out, sign, &marked);
    }
}

fn tell_decision(out: &mut String, when: &str, decision: &DecisionEntry) {
    if decision.is_note() {
        let _ = writeln!(out, "{when:>14}  {}", shown(&decision.detail));
        return;
    }
    let rule = decision.rule.as_ref().map(|rule| format!(", rule `{}`", shown(rule))).unwrap_or_default();
    let (phase, by, verdict) = (shown(&decision.phase), shown(&decision.by), shown(&decision.verdict));
    let _ = write!(out, "{when:>14}  {by}{rule} decided about the {phase}: {verdict}");
    if !decision.detail.is_empty() {
        let _ = write!(out, " ({})", shown(&decision.detail));
    }
    out.push_str(if decision.redacted { ", redacted\n" } else { "\n" });
    for (condition, held) in decision.conditions.iter() {
        let _ =
            writeln!(out, "{:16}{} {}", "", if *held { "held:        " } else { "did not hold:" }, shown(condition));
    }
    for (input, value) in &decision.inputs {
        let _ = writeln!(out, "{:16}used {}: {}", "", shown(input), shown(value));
    }
}

/// Writes the outcome, and the decision that led to it.
fn outcome(out: &mut String, entries: &[Entry], reached: bool) {
    let Some(finished) = ending(entries) else {
        out.push_str("\nThe tape does not show how it ended.\n");
        if let Some(tape) = decisions(entries).find_map(DecisionEntry::tape_of_rest) {
            let _ = writeln!(out, "The rest of it is on tape {}.", shown(tape));
        }
        return;
    };
    let (took, how) = (millis(finished.took), shown(&finished.outcome));
    let through = finished.backend.as_ref().map_or_else(|| "none".to_owned(), |name| shown(name));
    let (bytes_in, bytes_out) = (finished.bytes_in, finished.bytes_out);
    let _ =
        writeln!(out, "\nOutcome: {how} after {took}; backend: {through}; {bytes_in} bytes in, {bytes_out} bytes out.");
    if let Some(first) = finished.operation {
        let _ = writeln!(out, "It is round {} of the operation that began with exchange {first}.", finished.round);
    }
    let decisive = decisions(entries).filter(|decision| decision.verdict != "pass" && !decision.is_note()).last();
    if let Some(decision) = decisive {
        let rule = decision.rule.as_ref().map(|rule| format!(", rule `{}`", shown(rule))).unwrap_or_default();
        let _ = writeln!(out, "Decided by {}{rule}: {}.", shown(&decision.by), shown(&decision.verdict));
    }
    match decisions(entries).find_map(DecisionEntry::tape_of_beginning) {
        Some(tape) => {
            let _ = writeln!(out, "Its beginning is on tape {}.", shown(tape));
        }
        None if !reached => out.push_str("It never reached a backend.\n"),
        None => {}
    }
}

fn decisions(entries: &[Entry]) -> impl Iterator<Item = &DecisionEntry> {
    let lists = entries.iter().filter_map(|entry| match &entry.content {
        Content::Decisions(list) => Some(list),
        _ => None,
    });
    lists.flatten().map(|decision| &**decision)
}

/// Returns true if a message shows that its exchange reached a backend. A transparent proxy sees each message once, on
/// its way in, and reports a request that the server received but did not answer as `unanswered`.
fn reached(message: &MessageEntry, outcome: &str) -> bool {
    match message.point {
        Point::BackendOut | Point::BackendIn => true,
        Point::ClientIn => message.backend.is_some() && outcome == "unanswered",
        Point::ClientOut => false,
    }
}

fn toward_client(point: Point) -> bool {
    matches!(point, Point::BackendIn | Point::ClientOut)
}

fn first_point(point: Point) -> bool {
    matches!(point, Point::ClientIn | Point::BackendIn)
}

fn line(out: &mut String, sign: &str, bytes: &[u8]) {
    let cut = bytes.get(..MAX_SHOWN).unwrap_or(bytes);
    let rest = bytes.len() - cut.len();
    let _ = write!(out, "{:16}{sign}{}", "", shown(&String::from_utf8_lossy(cut)));
    match rest {
        0 => out.push('\n'),
        rest => {
            let _ = writeln!(out, " … and {rest} more bytes");
        }
    }
}

/// Escapes control characters, including line breaks, so that a text from a tape cannot control the terminal.
fn shown(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, letter| {
        match is_harmful(letter) {
            true => shown.extend(letter.escape_default()),
            false => shown.push(letter),
        }
        shown
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn story(exchange: u64) -> String {
        let entries: Vec<Entry> =
            sample::entries().into_iter().filter(|entry| entry.exchange == Some(exchange)).collect();
        explain(&entries)
    }

    /// A call that is on two tapes says so on both, and nothing is concluded from what is on the other one.
    /// Proves SO-9.
    #[test]
    fn a_call_on_two_tapes_names_the_other_one() {
        let note = |note: DecisionEntry| {
            let content = Content::Decisions(vec![std::sync::Arc::new(note)]);
            Entry { exchange: Some(7), ..Entry::new(1, 1, "ann".into(), content) }
        };
        let ended = |seq| {
            let finished =
                FinishedEntry { method: "tools/call".into(), outcome: "ok".into(), ..FinishedEntry::default() };
            Entry { exchange: Some(7), ..Entry::new(seq, 9, "ann".into(), Content::Finished(finished)) }
        };
        let first = explain(&[note(DecisionEntry::continues_on("6a-2"))]);
        assert!(first.contains("does not show how it ended.\nThe rest of it is on tape 6a-2.\n"), "{first}");
        let rest = explain(&[note(DecisionEntry::begun_on("6a-1")), ended(2)]);
        assert!(rest.contains("this call began on tape 6a-1"), "{rest}");
        assert!(rest.ends_with("Its beginning is on tape 6a-1.\n"), "{rest}");
        assert!(!rest.contains("Decided by") && !rest.contains("never reached"), "{rest}");
        assert!(explain(&[ended(1)]).ends_with("It never reached a backend.\n"));
    }

    #[test]
    fn a_blocked_call_explains_itself() {
        assert_eq!(
            story(1),
            r#"Exchange 1, session 1, for ann: tools/call files__delete
Began 2026-09-21T14:13:20.002Z

      0.000 ms  client to gateway: request, 119 bytes:
                {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files__delete","arguments":{"path":"/etc/passwd <b>"}}}
      1.000 ms  rules, rule `no-deletes` decided about the request: refuse (deleting is not allowed here)
                held:         tool equals `x`
                did not hold: hour is after 18
                used clock: 2026-09-21T14:26:40Z
      2.000 ms  gateway to client: error -32001, 63 bytes:
                {"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"no"}}
      3.000 ms  ended: refused

Outcome: refused after 0.400 ms; backend: none; 90 bytes in, 70 bytes out.
Decided by rules, rule `no-deletes`: refuse.
It never reached a backend.
"#
        );
    }

    #[test]
    fn a_modified_call_shows_what_was_changed() {
        let story = story(2);
        for line in [
            "rules, rule `double` decided about the request: modify (b was set to 4)",
            "gateway to backend (math): request, 99 bytes, changed:",
            "- {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"math__add\",\"arguments\":{\"a\":1,\"b\":2}}}",
            "+ {\"jsonrpc\":\"2.0\",\"id\":9001,\"method\":\"tools/call\",\"params\":{\"name\":\"add\",\"arguments\":{\"a\":1,\"b\":4}}}",
            "gateway to client: result,",
            "Outcome: success after 12.000 ms; backend: math;",
        ] {
            assert!(story.contains(line), "{line} is not in\n{story}");
        }
        assert!(!story.contains("never reached"));
    }

    #[test]
    fn a_collided_call_that_timed_out_says_both() {
        let story = story(3);
        for line in [
            "route decided about the request: collided (two backends have a tool `slow`; this one is math's)",
            "timeout decided about the request: timeout (math did not answer within 30 s)",
            "Outcome: timeout after 30000.000 ms; backend: math;",
            "Decided by timeout: timeout.",
        ] {
            assert!(story.contains(line), "{line} is not in\n{story}");
        }
    }

    /// Proves S-16.
    #[test]
    fn a_further_round_a_repeated_and_a_lost_message_say_so() {
        let entries: Vec<Entry> = sample::all_entries().into_iter().filter(|entry| entry.exchange == Some(5)).collect();
        let story = explain(&entries);
        for line in [
            "client to gateway: request, 96 bytes, message 42, redacted, by POST /mcp, status 202:",
            "gateway to client: result, 36 bytes, message 43, sent again (message 42), not delivered: closed, event 7_1:",
            "message 43 (gateway to client) did not arrive after all: overflow",
            "rules, rule `tell` decided about the request: log (a call came), redacted",
            "It is round 2 of the operation that began with exchange 4.",
        ] {
            assert!(story.contains(line), "{line} is not in\n{story}");
        }
    }

    #[test]
    fn what_is_not_there_is_said_and_nothing_speaks_to_the_terminal() {
        assert!(story(4).contains("gateway to client: result, 20000000 bytes, not kept"));
        assert_eq!(explain(&[]), "The tape has no entries for it.\n");
        let mut entry = sample::entries().remove(1);
        entry.principal = "\u{1b}[31mred\u{202e}".into();
        let story = explain(&[entry]);
        assert!(
            !story.contains(['\u{1b}', '\u{202e}']) && story.contains("The tape does not show how it ended."),
            "{story}"
        );
    }
}
