//! Single messages and batches.

use bytes::Bytes;

use crate::envelope::{Envelope, EnvelopeError, RejectedMessage};
use crate::json;
use crate::limits::Limits;

/// Content of one HTTP body, line or event.
#[derive(Clone, Debug)]
pub enum Message {
    /// Single message, not in an array.
    Single(Envelope),
    /// Array of messages. Each invalid element is rejected on its own.
    Batch(Vec<Result<Envelope, RejectedMessage>>),
}

impl Message {
    /// Parses a message or a batch of at most `max_batch` elements. The elements share the buffer.
    ///
    /// # Errors
    /// If the bytes are not JSON, the single message is rejected, or the batch is empty or too long.
    pub fn parse(bytes: Bytes, max_batch: usize) -> Result<Self, RejectedMessage> {
        if !is_array(&bytes) {
            return Envelope::parse(bytes).map(Self::Single);
        }
        Self::parse_batch(&bytes, max_batch)
    }

    /// Like [`Message::parse`], but parses a single message with [`Envelope::look`].
    ///
    /// # Errors
    /// The errors of [`Message::parse`].
    pub fn look(bytes: Bytes, limits: &Limits) -> Result<Self, RejectedMessage> {
        if !is_array(&bytes) {
            return Envelope::look(bytes, limits).map(Self::Single);
        }
        Self::parse_batch(&bytes, limits.batch)
    }

    fn parse_batch(bytes: &Bytes, max_batch: usize) -> Result<Self, RejectedMessage> {
        let elements = split(bytes, max_batch)?;
        Ok(Self::Batch(elements.into_iter().map(Envelope::parse).collect()))
    }
}

/// Returns `true` if the bytes start an array rather than a message.
#[must_use]
pub fn is_array(bytes: &[u8]) -> bool {
    bytes.get(json::skip_whitespace(bytes, 0)) == Some(&b'[')
}

/// Splits an array of at most `max_batch` elements without parsing these. They share the buffer.
///
/// # Errors
/// If the bytes are not an array, or it is empty or too long.
pub fn split(bytes: &Bytes, max_batch: usize) -> Result<Vec<Bytes>, RejectedMessage> {
    if u32::try_from(bytes.len()).is_err() {
        return Err(EnvelopeError::TooLarge.into());
    }
    let mut elements = json::elements(bytes);
    let mut spans = Vec::new();
    let mut count = 0_usize;
    while let Some(span) = elements.step().map_err(EnvelopeError::from)? {
        count += 1;
        if count <= max_batch {
            spans.push(span);
        }
    }
    let end = json::skip_whitespace(bytes, elements.end().unwrap_or(bytes.len()));
    if end != bytes.len() {
        return Err(EnvelopeError::NotJson { at: end, expected: "nothing after the batch" }.into());
    }
    if count == 0 {
        return Err(EnvelopeError::EmptyBatch.into());
    }
    if count > max_batch {
        return Err(EnvelopeError::BatchTooLong { max: max_batch }.into());
    }
    Ok(spans.iter().map(|span| bytes.slice(span.range())).collect())
}

/// Joins messages to a JSON array, in order.
#[must_use]
pub fn join(messages: &[Bytes]) -> Bytes {
    let length = messages.iter().map(|message| message.len() + 1).sum::<usize>() + 2;
    let mut out = Vec::with_capacity(length);
    out.push(b'[');
    for (index, message) in messages.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(message);
    }
    out.push(b']');
    Bytes::from(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::Kind;

    fn parse(text: &'static str) -> Result<Message, RejectedMessage> {
        Message::parse(Bytes::from_static(text.as_bytes()), 3)
    }

    /// Proves S-1.
    #[test]
    fn one_message_or_a_batch() {
        assert!(matches!(parse(r#"{"jsonrpc":"2.0","method":"a"}"#), Ok(Message::Single(_))));
        let batch = parse(r#" [ {"jsonrpc":"2.0","method":"a"} , {"jsonrpc":"2.0","id":1,"result":{}} ] "#);
        let Ok(Message::Batch(elements)) = batch else { panic!("{batch:?}") };
        let kinds: Vec<_> = elements.iter().map(|element| element.as_ref().unwrap().kind()).collect();
        assert_eq!(kinds, [Kind::Notification, Kind::Response]);
    }

    /// Proves S-7.
    #[test]
    fn a_bad_element_does_not_spoil_the_others() {
        let batch = parse(r#"[1,{"jsonrpc":"2.0","id":7,"method":3},{"jsonrpc":"2.0","method":"a"}]"#);
        let Ok(Message::Batch(elements)) = batch else { panic!("{batch:?}") };
        assert_eq!(elements[0].as_ref().unwrap_err().error, EnvelopeError::NotObject);
        let second = elements[1].as_ref().unwrap_err();
        assert_eq!((second.code(), second.id.as_ref().unwrap().as_u64()), (-32600, Some(7)));
        assert!(elements[2].is_ok());
    }

    /// Proves S-66.
    #[test]
    fn bad_batches_are_refused() {
        let check = |text, error, code| {
            let rejected = parse(text).unwrap_err();
            assert_eq!((&rejected.error, rejected.code()), (&error, code), "{text}");
        };
        check("[]", EnvelopeError::EmptyBatch, -32600);
        check("[1,2,3,4]", EnvelopeError::BatchTooLong { max: 3 }, -32600);
        check("[1,2", EnvelopeError::NotJson { at: 4, expected: "a comma or a closing bracket" }, -32700);
        check("[1,2,3,4", EnvelopeError::NotJson { at: 8, expected: "a comma or a closing bracket" }, -32700);
        check("[1]x", EnvelopeError::NotJson { at: 3, expected: "nothing after the batch" }, -32700);
    }

    #[test]
    fn joins() {
        assert_eq!(join(&[]), "[]");
        assert_eq!(join(&[Bytes::from_static(b"1"), Bytes::from_static(b"{}")]), "[1,{}]");
    }
}
