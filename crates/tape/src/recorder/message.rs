//! Reads the outline of a message, and compares bodies.

use bytes::Bytes;
use signalbox_engine::dialect::INVOKE;
use signalbox_engine::fact::Point;
use signalbox_engine::record::{Body, MessageKind};
use signalbox_wire::{Envelope, Kind, Span, json, method};
use std::sync::Arc;

/// Outline of a message.
#[derive(Debug)]
pub(crate) struct MessageInfo {
    pub(crate) kind: MessageKind,
    pub(crate) method: Option<Arc<str>>,
    pub(crate) subject: Option<Arc<str>>,
    pub(crate) error_code: Option<i64>,
    /// Span of its id, if that is a plain number.
    pub(crate) id: Option<Span>,
}

/// Parses as much of a message as the outline needs.
pub(crate) fn look(bytes: &Bytes, point: Point) -> MessageInfo {
    let mut seen = MessageInfo { kind: MessageKind::Raw, method: None, subject: None, error_code: None, id: None };
    let Ok(message) = Envelope::parse(bytes.clone()) else { return seen };
    seen.id = message.id_span().filter(|span| span.of(bytes).iter().all(u8::is_ascii_digit));
    seen.method = message.method().map(Arc::from);
    seen.kind = match message.kind() {
        Kind::Request => MessageKind::Request,
        Kind::Notification => MessageKind::Notification,
        Kind::Response => MessageKind::Result,
        Kind::Error => MessageKind::Error,
    };
    if seen.kind == MessageKind::Request && matches!(point, Point::ClientIn | Point::BackendOut) {
        seen.subject = subject(&message);
    }
    if let Some(error) = message.error() {
        let code = json::member(error, "code").map(|span| span.of(error));
        seen.error_code = code.and_then(|code| std::str::from_utf8(code).ok()?.parse().ok());
    }
    seen
}

/// Returns the tool, prompt or URI of a request.
fn subject(message: &Envelope) -> Option<Arc<str>> {
    let name = match message.method()? {
        method::TOOLS_CALL | method::PROMPTS_GET => "name",
        INVOKE => "tool_id",
        method::RESOURCES_READ | method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE => "uri",
        _ => return None,
    };
    let span = message.param(name)?;
    json::string(span.of(message.bytes())).map(Arc::from)
}

/// Common bytes of two bodies: a prefix, and a suffix of the rest.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Overlap {
    prefix: usize,
    suffix: usize,
}

impl Overlap {
    pub(crate) fn of(base: &[u8], body: &[u8]) -> Self {
        let prefix = common_prefix(base, body);
        let (base, body) = (base.get(prefix..).unwrap_or_default(), body.get(prefix..).unwrap_or_default());
        Self { prefix, suffix: common_suffix(base, body) }
    }

    /// Returns true if the differing bytes of `body` all lie within `part`.
    pub(crate) fn differs_within(self, body: &[u8], part: Span) -> bool {
        let is_within = part.start as usize <= self.prefix && body.len() - self.suffix <= part.end as usize;
        is_within || self.prefix == body.len()
    }

    /// Returns `body` as a difference from its base, if at least half of it is common.
    pub(crate) fn like(self, body: &[u8]) -> Option<Body> {
        let Self { prefix, suffix } = self;
        if (prefix + suffix) * 2 < body.len() {
            return None;
        }
        // A slice would keep the whole message in memory, so the differing bytes are copied.
        let middle = Bytes::copy_from_slice(body.get(prefix..body.len() - suffix).unwrap_or_default());
        Some(Body::Like { seq: 0, prefix: prefix as u64, suffix: suffix as u64, middle })
    }
}

/// Number of bytes compared at once: arrays of this size compile to vector instructions without a call.
const WIDE: usize = 64;

fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    let (chunks, others) = (one.as_chunks::<WIDE>().0, other.as_chunks::<WIDE>().0);
    let same = WIDE * chunks.iter().zip(others).take_while(|(one, other)| one == other).count();
    let rest = one.get(same..).unwrap_or_default().iter().zip(other.get(same..).unwrap_or_default());
    same + rest.take_while(|(one, other)| one == other).count()
}

fn common_suffix(one: &[u8], other: &[u8]) -> usize {
    let (chunks, others) = (one.as_rchunks::<WIDE>().1, other.as_rchunks::<WIDE>().1);
    let same = WIDE * chunks.iter().rev().zip(others.iter().rev()).take_while(|(one, other)| one == other).count();
    let (one, other) = (one.get(..one.len() - same), other.get(..other.len() - same));
    let rest = one.unwrap_or_default().iter().rev().zip(other.unwrap_or_default().iter().rev());
    same + rest.take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(base: &str, body: &str) -> Option<(u64, u64, String)> {
        match Overlap::of(base.as_bytes(), body.as_bytes()).like(body.as_bytes())? {
            Body::Like { prefix, suffix, middle, .. } => {
                let made =
                    [&base.as_bytes()[..prefix as usize], &middle, &base.as_bytes()[base.len() - suffix as usize..]];
                assert_eq!(made.concat(), body.as_bytes());
                Some((prefix, suffix, String::from_utf8_lossy(&middle).into_owned()))
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_image_is_told_by_its_difference() {
        assert_eq!(check("same", "same"), Some((4, 0, String::new())));
        assert_eq!(check("id:1,rest", "id:77,rest"), Some((3, 5, "77".to_owned())));
        assert_eq!(check("aa", "aaa"), Some((2, 0, "a".to_owned())));
        assert_eq!(check("aaaa", "aa"), Some((2, 0, String::new())));
        assert_eq!(check("abcd", "axyz"), None);
        assert_eq!(check("", ""), Some((0, 0, String::new())));
    }

    #[test]
    fn a_difference_is_found_wherever_it_stands() {
        let base: String = (0..400).map(|n| char::from(b'a' + (n % 23) as u8)).collect();
        for at in 0..base.len() {
            let mut body = base.clone();
            body.replace_range(at..=at, "_2_");
            assert_eq!(check(&base, &body), Some((at as u64, (base.len() - at - 1) as u64, "_2_".to_owned())));
        }
    }

    #[test]
    fn only_a_difference_of_ids_is_within_them() {
        let differs = |base: &str, body: &str| {
            let of = |text: &str| look(&Bytes::copy_from_slice(text.as_bytes()), Point::ClientIn).id;
            let overlap = Overlap::of(base.as_bytes(), body.as_bytes());
            let within = |text: &str| of(text).is_some_and(|id| overlap.differs_within(text.as_bytes(), id));
            within(base) && within(body)
        };
        let call = |id: &str, text: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{text}"}}}}"#)
        };
        for (one, other) in [("1", "77"), ("10", "1"), ("5", "5"), ("123", "923"), ("11", "111")] {
            assert!(differs(&call(one, "a"), &call(other, "a")), "{one} {other}");
        }
        assert!(!differs(&call("1", "a"), &call("2", "b")));
        assert!(!differs(&call("1", "a"), &call("1", "b")));
        assert!(!differs(&call("\"1\"", "a"), &call("\"2\"", "a")), "a text may hold anything");
        assert!(!differs(&call("-1", "a"), &call("1", "a")));
    }

    /// Proves S-29.
    #[test]
    fn the_outline_says_kind_method_subject_and_code() {
        let of = |text: &str| look(&Bytes::copy_from_slice(text.as_bytes()), Point::ClientIn);
        let call = of(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}"#);
        assert_eq!(
            (call.kind, call.method.as_deref(), call.subject.as_deref()),
            (MessageKind::Request, Some("tools/call"), Some("add"))
        );
        let error = of(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#);
        assert_eq!((error.kind, error.error_code), (MessageKind::Error, Some(-32601)));
        assert_eq!(of("Server started").kind, MessageKind::Raw);
        assert_eq!(of("[]").kind, MessageKind::Raw);
    }
}
