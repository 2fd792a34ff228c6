//! Events as gateways tell each other of them: `<number>:<JSON>`.
//!
//! Events that change what is kept are numbered within their session, from 1 on, so that a gateway knows what it missed. Others
//! have the number 0.

use crate::store::RelayEvent;
use crate::tool_request::ToolAnswer;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The largest answer that travels with its event. A larger one is read by the gateways that want it.
const MAX_CARRIED: usize = 16 << 10;

/// An event, and the answer that it tells of if that is small.
#[derive(Debug, Deserialize)]
pub struct Notice {
    event: RelayEvent,
    answer: Option<ToolAnswer>,
}

#[derive(Serialize)]
struct Told<'a> {
    event: &'a RelayEvent,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<&'a ToolAnswer>,
}

/// What is to be made of a notice.
#[derive(Debug)]
pub enum Heard {
    /// This is what happened.
    Event(RelayEvent),
    /// A request was answered, with something that has to be read.
    Answered(Box<str>),
}

impl Notice {
    /// An event as text, without what it carries.
    pub fn write(event: &RelayEvent) -> String {
        serde_json::to_string(&Told { event, answer: None }).unwrap_or_default()
    }

    /// The event of an answer as text, with the answer if it is small. `size` is that of the answer.
    pub fn write_answer(event: &RelayEvent, answer: &ToolAnswer, size: usize) -> String {
        let answer = (size <= MAX_CARRIED).then_some(answer);
        serde_json::to_string(&Told { event, answer }).unwrap_or_default()
    }

    /// Reads an event. `None` for what another version may have told.
    pub fn read(text: &str) -> Option<Heard> {
        let Self { event, answer } = serde_json::from_str(text).ok()?;
        Some(match (event, answer) {
            (RelayEvent::Answered { id, .. }, Some(answer)) => {
                Heard::Event(RelayEvent::Answered { id, answer: Arc::new(answer) })
            }
            (RelayEvent::Answered { id, .. }, None) => Heard::Answered(id),
            (event, _) => Heard::Event(event),
        })
    }

    /// The number of a message, and the event.
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
        let Some(Heard::Answered(id)) = Notice::read(&Notice::write(&event)) else { panic!("the answer is elsewhere") };
        assert_eq!(&*id, "7");
        let carried = Notice::read(&Notice::write_answer(&event, &answer, 10));
        let Some(Heard::Event(RelayEvent::Answered { answer: read, .. })) = carried else { panic!("{carried:?}") };
        assert!(matches!(&*read, ToolAnswer::Result(result) if result.get() == "{\"a\":\n 1}"));
        assert!(!Notice::write_answer(&event, &answer, MAX_CARRIED + 1).contains("\"a\""));
        let progress = RelayEvent::Progressed { id: "7".into(), progress: raw("{\"progress\": 0.5}") };
        let read = Notice::read(&Notice::write(&progress));
        let Some(Heard::Event(RelayEvent::Progressed { progress, .. })) = read else { panic!("{read:?}") };
        assert_eq!(progress.get(), "{\"progress\": 0.5}");
        assert!(Notice::read("{\"event\":\"of_tomorrow\"}").is_none() && Notice::read("").is_none());
        assert_eq!(Notice::numbered("12:{\"event\":\"ended\"}"), Some((12, "{\"event\":\"ended\"}")));
        assert!(Notice::numbered("x:{}").is_none() && Notice::numbered("12").is_none());
    }
}
