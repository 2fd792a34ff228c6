//! Events as gateways exchange them: `<number>:<JSON>`.
//!
//! Events that change stored state are numbered within their session, from 1, so that a gateway can tell what it
//! missed. Others have the number 0.

use crate::store::RelayEvent;
use crate::tool_request::ToolAnswer;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Maximum size of an answer that is sent with its event. Larger ones are read from the store.
const MAX_CARRIED: usize = 16 << 10;

/// Event, with its answer if that is small.
#[derive(Debug, Deserialize)]
pub struct Notice {
    event: RelayEvent,
    answer: Option<ToolAnswer>,
}

#[derive(Serialize)]
struct NoticeRef<'a> {
    event: &'a RelayEvent,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<&'a ToolAnswer>,
}

/// Result of parsing a notice.
#[derive(Debug)]
pub enum ParsedNotice {
    /// An event with its payload.
    Event(RelayEvent),
    /// A request was answered; the answer has to be read from the store.
    Answered(Box<str>),
}

impl Notice {
    /// Serializes an event without its payload.
    pub fn write(event: &RelayEvent) -> String {
        serde_json::to_string(&NoticeRef { event, answer: None }).unwrap_or_default()
    }

    /// Serializes the event of an answer, with the answer if its `size` is small.
    pub fn write_answer(event: &RelayEvent, answer: &ToolAnswer, size: usize) -> String {
        let answer = (size <= MAX_CARRIED).then_some(answer);
        serde_json::to_string(&NoticeRef { event, answer }).unwrap_or_default()
    }

    /// Parses an event. `None` for an event that only another version knows.
    pub fn read(text: &str) -> Option<ParsedNotice> {
        let Self { event, answer } = serde_json::from_str(text).ok()?;
        Some(match (event, answer) {
            (RelayEvent::Answered { id, .. }, Some(answer)) => {
                ParsedNotice::Event(RelayEvent::Answered { id, answer: Arc::new(answer) })
            }
            (RelayEvent::Answered { id, .. }, None) => ParsedNotice::Answered(id),
            (event, _) => ParsedNotice::Event(event),
        })
    }

    /// Splits a message into number and event.
    pub fn numbered(message: &str) -> Option<(u64, &str)> {
        let (number, text) = message.split_once(':')?;
        Some((number.parse().ok()?, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    #[test]
    fn events_are_read_as_they_were_told_and_only_small_answers_travel_with_them() {
        let raw = |text: &str| crate::json_text::JsonText::from(RawValue::from_string(text.to_owned()).unwrap());
        let answer = ToolAnswer::Result(raw("{\"a\":\n 1}"));
        let event = RelayEvent::Answered { id: "7".into(), answer: Arc::new(answer.clone()) };
        let Some(ParsedNotice::Answered(id)) = Notice::read(&Notice::write(&event)) else {
            panic!("the answer is elsewhere")
        };
        assert_eq!(&*id, "7");
        let carried = Notice::read(&Notice::write_answer(&event, &answer, 10));
        let Some(ParsedNotice::Event(RelayEvent::Answered { answer: read, .. })) = carried else {
            panic!("{carried:?}")
        };
        assert!(matches!(&*read, ToolAnswer::Result(result) if result.get() == "{\"a\":\n 1}"));
        assert!(!Notice::write_answer(&event, &answer, MAX_CARRIED + 1).contains("\"a\""));
        let progress = RelayEvent::Progressed { id: "7".into(), progress: raw("{\"progress\": 0.5}") };
        let read = Notice::read(&Notice::write(&progress));
        let Some(ParsedNotice::Event(RelayEvent::Progressed { progress, .. })) = read else { panic!("{read:?}") };
        assert_eq!(progress.get(), "{\"progress\": 0.5}");
        assert!(Notice::read("{\"event\":\"of_tomorrow\"}").is_none() && Notice::read("").is_none());
        assert_eq!(Notice::numbered("12:{\"event\":\"ended\"}"), Some((12, "{\"event\":\"ended\"}")));
        assert!(Notice::numbered("x:{}").is_none() && Notice::numbered("12").is_none());
    }
}
