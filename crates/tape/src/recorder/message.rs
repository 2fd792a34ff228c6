//! What a tape says about a message besides its bytes.

use bytes::Bytes;
use signalbox_engine::dialect::INVOKE;
use signalbox_engine::fact::Point;
use signalbox_engine::record::{Body, MessageKind};
use signalbox_wire::{Envelope, Kind, json, method};
use std::sync::Arc;

/// The outline of a message.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) kind: MessageKind,
    pub(crate) method: Option<Arc<str>>,
    pub(crate) subject: Option<Arc<str>>,
    pub(crate) error_code: Option<i64>,
}

/// Reads a message just far enough.
pub(crate) fn look(bytes: &Bytes, point: Point) -> Seen {
    let mut seen = Seen { kind: MessageKind::Raw, method: None, subject: None, error_code: None };
    let Ok(message) = Envelope::parse(bytes.clone()) else { return seen };
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

/// The tool, prompt or URI that a request is about.
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

/// `body` told by its difference from `base`, where at least half of it is the same.
pub(crate) fn like(base: &Bytes, body: &Bytes) -> Option<Body> {
    let most = base.len().min(body.len());
    let prefix = common(base.iter().zip(body.iter()), most);
    let suffix = common(base.iter().rev().zip(body.iter().rev()), most - prefix);
    if (prefix + suffix) * 2 < body.len() {
        return None;
    }
    // Copied, so that a few bytes do not hold a whole message in memory.
    let middle = Bytes::copy_from_slice(body.get(prefix..body.len() - suffix).unwrap_or_default());
    Some(Body::Like { seq: 0, prefix: prefix as u64, suffix: suffix as u64, middle })
}

fn common<'a>(pairs: impl Iterator<Item = (&'a u8, &'a u8)>, most: usize) -> usize {
    pairs.take(most).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(base: &str, body: &str) -> Option<(u64, u64, String)> {
        match like(&Bytes::copy_from_slice(base.as_bytes()), &Bytes::copy_from_slice(body.as_bytes()))? {
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
    fn s_29_the_outline_says_kind_method_subject_and_code() {
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
