//! Whether the messages of each client connection stand on the tape in the order in which they passed.

use std::collections::BTreeMap;

use super::finding::{Finding, TapeFault};
use super::witness::WitnessedMessage;
use super::{Point, ReadTape};

/// What is out of order. What is not on the tape at all is another fault.
pub fn order(wire: &[WitnessedMessage], tape: &ReadTape) -> Vec<Finding> {
    let mut findings = Vec::new();
    for point in [Point::ClientIn, Point::ClientOut] {
        let mut connections: BTreeMap<u64, Vec<&WitnessedMessage>> = BTreeMap::new();
        for seen in wire.iter().filter(|seen| seen.point == point) {
            connections.entry(seen.connection).or_default().push(seen);
        }
        let taped = tape.messages.iter().filter(|taped| taped.point == point);
        let texts: Vec<&str> = taped.filter_map(|taped| taped.text.as_deref()).collect();
        for seen in connections.values() {
            findings.extend(first_behind(seen, &texts));
        }
    }
    findings
}

/// The first message that stands on the tape only before one that it came after.
fn first_behind(seen: &[&WitnessedMessage], texts: &[&str]) -> Option<Finding> {
    let mut from = 0;
    for one in seen {
        match texts.iter().skip(from).position(|text| **text == one.text) {
            Some(place) => from += place + 1,
            None if texts.contains(&one.text.as_str()) => {
                return Some(Finding::new(TapeFault::Disorder, one.point, &one.label, &one.text));
            }
            None => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::Taped;
    use super::*;

    #[test]
    fn only_what_came_over_one_connection_has_an_order() {
        let seen = |connection, text: &str| WitnessedMessage {
            point: Point::ClientOut,
            connection,
            at: 0,
            text: text.to_owned(),
            label: text.to_owned(),
        };
        let taped = |(seq, text): (usize, &&str)| Taped {
            seq: seq as u64,
            at: 0,
            session: None,
            exchange: None,
            point: Point::ClientOut,
            method: None,
            text: Some((*text).to_owned()),
            again: None,
            delivered: true,
        };
        let of = |texts: &[&str]| ReadTape {
            messages: texts.iter().enumerate().map(taped).collect(),
            ..ReadTape::default()
        };
        let wire = [seen(1, "a"), seen(2, "x"), seen(1, "b")];
        assert_eq!(order(&wire, &of(&["x", "a", "b"])), []);
        assert_eq!(order(&wire, &of(&["a", "b"])), []);
        let behind = order(&wire, &of(&["b", "a", "x"]));
        assert_eq!(behind.iter().map(|finding| finding.label.as_str()).collect::<Vec<_>>(), ["b"]);
    }
}
