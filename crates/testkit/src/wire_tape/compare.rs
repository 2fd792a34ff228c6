//! Holds a tape against the wire, message by message.

use std::collections::HashMap;

use serde_json::Value;

use super::finding::{Finding, TapeFault};
use super::witness::{WitnessedMessage, outline};
use super::{Point, ReadTape, Taped};

/// What is missing on the tape, what is on it besides, and what has other bytes there.
///
/// From `ended` on the gateway was ending: what was sent to it since need not have been read, and what it sent since
/// need not have arrived.
pub fn compare(wire: &[WitnessedMessage], tape: &ReadTape, ended: u64) -> Vec<Finding> {
    let mut findings = Vec::new();
    for gap in &tape.gaps {
        findings.push(Finding::meeting("gap", gap));
    }
    for point in Point::ALL {
        let seen: Vec<&WitnessedMessage> = wire.iter().filter(|seen| seen.point == point).collect();
        let taped: Vec<&Taped> = tape.messages.iter().filter(|taped| taped.point == point).collect();
        at_point(point, &seen, &taped, ended, &mut findings);
    }
    findings
}

fn at_point(point: Point, seen: &[&WitnessedMessage], taped: &[&Taped], ended: u64, findings: &mut Vec<Finding>) {
    let mut left: HashMap<&str, Vec<&Taped>> = HashMap::new();
    for one in taped.iter().rev() {
        match &one.text {
            Some(text) => left.entry(text).or_default().push(one),
            None => findings.push(Finding::new(TapeFault::Differs, point, label(one), "its body is left out")),
        }
    }
    for one in taped.iter().filter(|one| one.again.is_some()) {
        let first = taped.iter().find(|other| Some(other.seq) == one.again && other.seq < one.seq);
        if first.is_none_or(|first| first.text != one.text) {
            findings.push(Finding::new(
                TapeFault::Differs,
                point,
                label(one),
                "it is sent again, and what was sent first is not there",
            ));
        }
    }
    let mut missing: Vec<&WitnessedMessage> = Vec::new();
    for one in seen {
        let found = left.get_mut(one.text.as_str()).and_then(Vec::pop);
        match found {
            Some(found) if !found.delivered => {
                let what = "the tape says that it was not delivered";
                findings.push(Finding::new(TapeFault::Differs, point, &one.label, what));
            }
            Some(_) => {}
            None => missing.push(one),
        }
    }
    let mut extra: Vec<&Taped> = left.into_values().flatten().collect();
    extra.sort_by_key(|one| one.seq);
    for one in missing {
        let twin = extra.iter().position(|other| {
            // Answers of several connections may have one id, so what they answer has to be the same as well.
            one.label.starts_with(&label(other)) && same(&one.text, other.text.as_deref().unwrap_or_default())
        });
        if let Some(twin) = twin {
            let other = extra.remove(twin);
            let text = format!("wire {} tape {}", one.text, other.text.as_deref().unwrap_or_default());
            findings.push(Finding::new(TapeFault::Differs, point, &one.label, text));
        } else if one.at < ended || matches!(point, Point::BackendOut | Point::ClientOut) {
            findings.push(Finding::new(TapeFault::Missing, point, &one.label, &one.text));
        }
    }
    for one in extra {
        let may_be_lost = one.at >= ended && matches!(point, Point::BackendOut | Point::ClientOut);
        if !may_be_lost && one.delivered {
            let text = one.text.as_deref().unwrap_or_default();
            findings.push(Finding::new(TapeFault::Extra, point, label(one), text));
        }
    }
}

/// What a message on a tape is.
pub fn label(taped: &Taped) -> String {
    let message = taped.text.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null);
    outline(&message, taped.method.as_deref())
}

/// Whether two texts are one message with other bytes: of one kind, with one id and one method.
fn same(one: &str, other: &str) -> bool {
    let (one, other): (Value, Value) = match (serde_json::from_str(one), serde_json::from_str(other)) {
        (Ok(one), Ok(other)) => (one, other),
        _ => return false,
    };
    let identified = one.get("id").is_some_and(|id| !id.is_null());
    identified && ["id", "method"].iter().all(|member| one.get(member) == other.get(member))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(point: Point, at: u64, text: &str) -> WitnessedMessage {
        WitnessedMessage { point, connection: 1, at, text: text.to_owned(), label: "request ping".to_owned() }
    }

    fn taped(seq: u64, point: Point, text: &str) -> Taped {
        let (text, at) = (Some(text.to_owned()), seq);
        let (session, exchange, method, again) = (None, None, None, None);
        Taped { seq, at, session, exchange, point, method, text, again, delivered: true }
    }

    fn faults(wire: &[WitnessedMessage], messages: Vec<Taped>) -> Vec<(TapeFault, Option<Point>)> {
        let tape = ReadTape { messages, ..ReadTape::default() };
        compare(wire, &tape, 100).into_iter().map(|finding| (finding.fault, finding.point)).collect()
    }

    const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

    #[test]
    fn the_same_messages_as_often_are_no_fault() {
        let wire = [seen(Point::ClientIn, 1, PING), seen(Point::ClientIn, 2, PING)];
        assert_eq!(faults(&wire, vec![taped(1, Point::ClientIn, PING), taped(2, Point::ClientIn, PING)]), []);
    }

    #[test]
    fn what_is_missing_is_besides_or_has_other_bytes_is_told() {
        let wire = [seen(Point::ClientIn, 1, PING), seen(Point::BackendIn, 2, PING)];
        let spaced = PING.replace(',', ", ");
        let found = faults(&wire, vec![taped(1, Point::ClientIn, &spaced), taped(2, Point::ClientOut, PING)]);
        let wanted = [
            (TapeFault::Differs, Some(Point::ClientIn)),
            (TapeFault::Missing, Some(Point::BackendIn)),
            (TapeFault::Extra, Some(Point::ClientOut)),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn what_is_sent_again_names_what_was_sent_first_and_what_was_not_delivered_was_not_on_the_wire() {
        let again = |of| Taped { again: Some(of), ..taped(2, Point::ClientOut, PING) };
        let wire = [seen(Point::ClientOut, 1, PING), seen(Point::ClientOut, 2, PING)];
        assert_eq!(faults(&wire, vec![taped(1, Point::ClientOut, PING), again(1)]), []);
        let found = faults(&wire, vec![taped(1, Point::ClientOut, PING), again(7)]);
        assert_eq!(found, [(TapeFault::Differs, Some(Point::ClientOut))]);
        let lost = Taped { delivered: false, ..taped(1, Point::ClientOut, PING) };
        assert_eq!(faults(&[], vec![lost.clone()]), []);
        assert_eq!(faults(&wire[..1], vec![lost]), [(TapeFault::Differs, Some(Point::ClientOut))]);
    }

    #[test]
    fn at_the_end_only_what_was_sent_to_the_gateway_may_be_lost() {
        assert_eq!(faults(&[seen(Point::BackendIn, 100, PING)], Vec::new()), []);
        let got = faults(&[seen(Point::BackendOut, 100, PING)], Vec::new());
        assert_eq!(got, [(TapeFault::Missing, Some(Point::BackendOut))]);
        assert_eq!(faults(&[], vec![taped(100, Point::ClientOut, PING)]), []);
        assert_eq!(faults(&[], vec![taped(100, Point::ClientIn, PING)]), [(TapeFault::Extra, Some(Point::ClientIn))]);
    }
}
