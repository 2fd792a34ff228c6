//! Recorded message together with its redaction.

use bytes::Bytes;
use serde_json::Value;
use signalbox_engine::record::{Body, MessageEntry};
use signalbox_wire::{Envelope, Limits};

/// Default placeholders that recorders substitute for secrets.
const MARKS: [&[u8]; 4] = [b"[redacted]", b"hash:", b"enc:", b"****"];

/// Message as recorded at one point.
#[derive(Clone, Debug)]
pub(super) struct Image {
    /// Body, or `None` if it was not recorded.
    bytes: Option<Bytes>,
    pub redacted: bool,
}

impl Image {
    pub fn of(message: &MessageEntry) -> Self {
        let bytes = match &message.body {
            Body::Whole(bytes) => Some(bytes.clone()),
            _ => None,
        };
        Self { bytes, redacted: message.redacted }
    }

    pub fn length(&self) -> usize {
        self.bytes.as_ref().map_or(0, Bytes::len)
    }

    pub fn envelope(&self) -> Option<Envelope> {
        Envelope::read(self.bytes.clone()?, &Limits::default()).ok()
    }

    /// Returns a member of the message, or `None` if the message was redacted.
    pub fn member(&self, name: &str) -> Option<Value> {
        if self.redacted {
            return None;
        }
        let mut message: Value = serde_json::from_slice(self.bytes.as_ref()?).ok()?;
        message.get_mut(name).map(Value::take)
    }

    /// Returns a member of the message as recorded, with any redaction marks.
    pub fn shown(&self, name: &str) -> Option<Value> {
        let mut message: Value = serde_json::from_slice(self.bytes.as_ref()?).ok()?;
        message.get_mut(name).map(Value::take)
    }

    /// Returns `true` if the value may differ from the one sent. A redacted message without any known mark had its
    /// secrets removed without a trace, so any value may be affected.
    pub fn hides(&self, value: Option<&[u8]>) -> bool {
        let marked = |bytes: &[u8]| MARKS.iter().any(|mark| contains(bytes, mark));
        let traceless = || !self.bytes.as_deref().is_some_and(marked);
        self.redacted && (value.is_some_and(marked) || traceless())
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::fact::Point;
    use signalbox_engine::record::MessageKind;

    #[test]
    fn what_was_taken_out_is_known_by_its_marks_or_may_be_anything() {
        let image = |text: &'static str, redacted| {
            let body = Body::Whole(Bytes::from_static(text.as_bytes()));
            let message = MessageEntry::new(Point::ClientIn, MessageKind::Request, 0, body);
            Image::of(&MessageEntry { redacted, ..message })
        };
        let marked = image(r#"{"params":{"a":"[redacted]","b":1}}"#, true);
        assert!(marked.hides(Some(br#""[redacted]""#)) && !marked.hides(Some(b"1")) && !marked.hides(None));
        assert!(marked.hides(Some(br#"{"a":"[redacted]","b":1}"#)), "an object that holds one");
        let removed = image(r#"{"params":{"b":1}}"#, true);
        assert!(removed.hides(Some(b"1")) && removed.hides(None));
        let whole = image(r#"{"params":{"a":"[redacted]"}}"#, false);
        assert!(!whole.hides(Some(br#""[redacted]""#)), "somebody sent just this");
        assert_eq!((marked.member("params"), whole.member("params").is_some()), (None, true));
    }
}
