//! JSON pointers evaluated on raw bytes.

use crate::limits;
use signalbox_wire::{Span, json};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pointer {
    text: Box<str>,
    segments: Box<[Box<str>]>,
}

impl Pointer {
    /// Parses a pointer: empty, or `/` before each segment, with `~1` for `/` and `~0` for `~`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > limits::POINTER {
            return None;
        }
        let rest = match text.strip_prefix('/') {
            Some(rest) => rest,
            None if text.is_empty() => return Some(Self { text: "".into(), segments: Box::new([]) }),
            None => return None,
        };
        let segments: Option<Box<[_]>> = rest.split('/').map(segment).collect();
        let segments = segments.filter(|segments| segments.len() <= limits::SEGMENTS)?;
        Some(Self { text: text.into(), segments })
    }

    /// Returns the pointer as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn segments(&self) -> &[Box<str>] {
        &self.segments
    }

    /// Locates the target in `base`, relative to the value at `from`.
    #[must_use]
    pub fn find(&self, base: &[u8], from: Span) -> Option<Span> {
        follow(&self.segments, base, from)
    }
}

/// Follows segments from a value.
pub(crate) fn follow(segments: &[Box<str>], base: &[u8], from: Span) -> Option<Span> {
    segments.iter().try_fold(from, |here, segment| step(segment, base, here))
}

/// Follows one segment to an object's member or an array's element.
pub(crate) fn step(segment: &str, base: &[u8], here: Span) -> Option<Span> {
    let value = here.of(base);
    let found = match value.get(json::skip_whitespace(value, 0))? {
        b'{' => json::member(value, segment),
        b'[' => json::elements(value).nth(index(segment)?),
        _ => None,
    };
    found.map(|span| span.shift(here.start))
}

/// Parses an index without leading zeros.
pub(crate) fn index(segment: &str) -> Option<usize> {
    let plain = segment == "0" || !segment.starts_with('0') && segment.bytes().all(|byte| byte.is_ascii_digit());
    if plain { segment.parse().ok() } else { None }
}

fn segment(raw: &str) -> Option<Box<str>> {
    let mut rest = raw;
    while let Some(at) = rest.find('~') {
        if !matches!(rest.as_bytes().get(at + 1), Some(b'0' | b'1')) {
            return None;
        }
        rest = &rest[at + 2..];
    }
    Some(raw.replace("~1", "/").replace("~0", "~").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at<'a>(pointer: &str, text: &'a str) -> Option<&'a str> {
        let span = Pointer::parse(pointer).unwrap().find(text.as_bytes(), Span::new(0, text.len()))?;
        Some(&text[span.range()])
    }

    #[test]
    fn a_pointer_goes_through_objects_and_arrays_and_reads_its_escapes() {
        let text = r#"{"a/b":[10,{"m~n":true}],"":7,"01":8}"#;
        assert_eq!(at("", text), Some(text));
        assert_eq!(at("/a~1b/1/m~0n", text), Some("true"));
        assert_eq!(at("/a~1b/0", text), Some("10"));
        assert_eq!(at("/", text), Some("7"));
        assert_eq!(at("/01", text), Some("8"));
        for nowhere in ["/a~1b/2", "/a~1b/01", "/a~1b/-", "/x", "/a~1b/0/y", "/a~1b/+1"] {
            assert_eq!(at(nowhere, text), None, "{nowhere}");
        }
    }

    #[test]
    fn what_is_no_pointer_is_not_read_as_one() {
        let deep = "/a".repeat(limits::SEGMENTS + 1);
        let long = format!("/{}", "a".repeat(limits::POINTER));
        for bad in ["a", "a/b", "/~", "/~2", deep.as_str(), &long] {
            assert_eq!(Pointer::parse(bad), None, "{bad}");
        }
    }
}
