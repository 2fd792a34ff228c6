//! Edits messages by JSON pointer. All other bytes stay unchanged.

use crate::facts::Root;
use crate::pointer::{Pointer, index, step};
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, Span, json};

/// Sets the value at a place, creating missing objects on the path. Returns `None` if the path crosses a value that is
/// neither an object nor an array.
pub(crate) fn set(bytes: &Bytes, root: Root, pointer: &Pointer, value: &[u8]) -> Option<Bytes> {
    let mut here = object(bytes)?;
    let mut edits = Edits::new();
    let segments: Vec<&str> = std::iter::once(root.word()).chain(pointer.segments().iter().map(|one| &**one)).collect();
    for (at, segment) in segments.iter().enumerate() {
        if let Some(next) = step(segment, bytes, here) {
            here = next;
            continue;
        }
        let value = nested(&segments[at + 1..], value);
        match bytes.get(here.start as usize)? {
            b'{' => edits.set_member(bytes, here, segment, &value),
            b'[' => append(&mut edits, bytes, here, segment, &value)?,
            _ => return None,
        }
        return Some(edits.apply(bytes));
    }
    edits.replace(here, value);
    Some(edits.apply(bytes))
}

/// Removes a member or an element. Returns `None` if it does not exist.
pub(crate) fn remove(bytes: &Bytes, root: Root, pointer: &Pointer) -> Option<Bytes> {
    let (last, way) = pointer.segments().split_last()?;
    let mut here = step(root.word(), bytes, object(bytes)?)?;
    for segment in way {
        here = step(segment, bytes, here)?;
    }
    let gone = step(last, bytes, here)?;
    let mut edits = Edits::new();
    if bytes.get(here.start as usize) == Some(&b'{') {
        edits.remove_member(bytes, here, last);
    } else {
        let items: Vec<Span> = json::elements(here.of(bytes)).map(|span| span.shift(here.start)).collect();
        let at = items.iter().position(|item| *item == gone)?;
        edits.remove(match (at.checked_sub(1).and_then(|before| items.get(before)), items.get(at + 1)) {
            (Some(before), _) => Span { start: before.end, end: gone.end },
            (None, Some(after)) => Span { start: gone.start, end: after.start },
            (None, None) => gone,
        });
    }
    Some(edits.apply(bytes))
}

/// Replaces the params or the result. An error becomes a result.
pub(crate) fn replace(message: &Envelope, root: Root, value: &[u8]) -> Bytes {
    let bytes = message.bytes();
    let mut edits = Edits::new();
    let present = if root == Root::Params { message.params_span() } else { message.result_span() };
    match present {
        Some(span) => edits.replace(span, value),
        None => {
            if root == Root::Result {
                edits.remove_member(bytes, message.object_span(), "error");
            }
            edits.set_member(bytes, message.object_span(), root.word(), value);
        }
    }
    edits.apply(bytes)
}

fn object(bytes: &[u8]) -> Option<Span> {
    let start = json::skip_whitespace(bytes, 0);
    let end = bytes.iter().rposition(|byte| *byte == b'}')? + 1;
    Some(Span::new(start, end))
}

/// Wraps the value in new objects for the rest of the path.
fn nested(way: &[&str], value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for segment in way {
        out.push(b'{');
        json::write_quoted(&mut out, segment);
        out.push(b':');
    }
    out.extend_from_slice(value);
    out.extend(std::iter::repeat_n(b'}', way.len()));
    out
}

/// Appends an element. Returns `None` for any other missing index.
fn append(edits: &mut Edits, bytes: &[u8], array: Span, segment: &str, value: &[u8]) -> Option<()> {
    let items: Vec<Span> = json::elements(array.of(bytes)).collect();
    if segment != "-" && index(segment) != Some(items.len()) {
        return None;
    }
    match items.last() {
        Some(last) => edits.insert(last.shift(array.start).end, [b",", value].concat()),
        None => edits.insert(array.start + 1, value),
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Bytes {
        Bytes::copy_from_slice(text.as_bytes())
    }

    fn after_set(text: &str, pointer: &str, value: &str) -> Option<String> {
        let changed = set(&bytes(text), Root::Params, &Pointer::parse(pointer).unwrap(), value.as_bytes())?;
        Some(String::from_utf8(changed.to_vec()).unwrap())
    }

    fn after_remove(text: &str, pointer: &str) -> Option<String> {
        let changed = remove(&bytes(text), Root::Params, &Pointer::parse(pointer).unwrap())?;
        Some(String::from_utf8(changed.to_vec()).unwrap())
    }

    #[test]
    fn a_value_is_set_where_it_is_added_where_it_is_not_and_objects_are_made_on_the_way() {
        let text = r#"{ "params" : {"a": [1 , 2],"b" : 1.0e0} }"#;
        assert_eq!(after_set(text, "/b", "2").unwrap(), r#"{ "params" : {"a": [1 , 2],"b" : 2} }"#);
        assert_eq!(after_set(text, "/c/d", "2").unwrap(), r#"{ "params" : {"a": [1 , 2],"b" : 1.0e0,"c":{"d":2}} }"#);
        assert_eq!(after_set(text, "/a/1", "9").unwrap(), r#"{ "params" : {"a": [1 , 9],"b" : 1.0e0} }"#);
        assert_eq!(after_set(text, "/a/-", "9").unwrap(), r#"{ "params" : {"a": [1 , 2,9],"b" : 1.0e0} }"#);
        assert_eq!(after_set(text, "/a/2", "9").unwrap(), r#"{ "params" : {"a": [1 , 2,9],"b" : 1.0e0} }"#);
        assert_eq!(after_set(r#"{"x":1}"#, "/a", "1").unwrap(), r#"{"x":1,"params":{"a":1}}"#);
        assert_eq!(after_set(r#"{"params":[]}"#, "/-", "1").unwrap(), r#"{"params":[1]}"#);
        assert_eq!(after_set(text, "/b/c", "1"), None);
        assert_eq!(after_set(text, "/a/7", "1"), None);
    }

    #[test]
    fn a_value_is_taken_out_with_its_comma() {
        let text = r#"{"params":{"a":[1, 2 ,3],"b":{"c":1}}}"#;
        assert_eq!(after_remove(text, "/b/c").unwrap(), r#"{"params":{"a":[1, 2 ,3],"b":{}}}"#);
        assert_eq!(after_remove(text, "/a/0").unwrap(), r#"{"params":{"a":[2 ,3],"b":{"c":1}}}"#);
        assert_eq!(after_remove(text, "/a/2").unwrap(), r#"{"params":{"a":[1, 2],"b":{"c":1}}}"#);
        assert_eq!(after_remove(r#"{"params":[1]}"#, "/0").unwrap(), r#"{"params":[]}"#);
        assert_eq!(after_remove(text, "/x"), None);
    }
}
