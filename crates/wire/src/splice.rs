//! Edits of a message that keep all other bytes.

use bytes::Bytes;

use crate::json;
use crate::span::Span;

/// Set of edits to the same original bytes, applied together by [`Edits::apply`].
///
/// Edits may be added in any order. If two overlap, [`Edits::apply`] ignores the later one and [`Edits::apply_all`]
/// fails. Insertions at the same position keep their order.
#[derive(Clone, Debug, Default)]
pub struct Edits(
    /// Boxed, because edits are passed on more often than they are made.
    Option<Box<EditList>>,
);

/// Two edits of the same bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("two changes of the same bytes at offset {at}")]
pub struct Overlap {
    /// Start of the second edit.
    pub at: u32,
}

/// Maximum length of a replacement that is stored inline, in bytes.
const SHORT: usize = 23;

#[derive(Clone, Debug, Default)]
struct EditList {
    /// The only edit, if there is exactly one, such as a changed id. The other fields are empty then.
    only: Option<InlineEdit>,
    edits: Vec<Edit>,
    members: Vec<MemberEdit>,
    /// Replacement bytes of all edits.
    text: Vec<u8>,
}

#[derive(Copy, Clone, Debug)]
struct Edit {
    span: Span,
    text: Span,
}

#[derive(Copy, Clone, Debug)]
struct InlineEdit {
    span: Span,
    text: [u8; SHORT],
    length: u8,
}

impl InlineEdit {
    fn new(span: Span, from: &[u8]) -> Option<Self> {
        let mut text = [0; SHORT];
        text.get_mut(..from.len())?.copy_from_slice(from);
        Some(Self { span, text, length: from.len() as u8 })
    }

    fn text(&self) -> &[u8] {
        self.text.get(..usize::from(self.length)).unwrap_or_default()
    }
}

/// Edit of one member. Resolved when applied, because the commas depend on all edits of the object.
#[derive(Copy, Clone, Debug)]
struct MemberEdit {
    object: Span,
    key: Span,
    /// New value, or `None` to remove the member.
    value: Option<Span>,
}

impl Edits {
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces the bytes of `span`.
    pub fn replace(&mut self, span: Span, text: impl AsRef<[u8]>) {
        if span.start > span.end {
            return;
        }
        if self.0.is_none()
            && let Some(only) = InlineEdit::new(span, text.as_ref())
        {
            self.0 = Some(Box::new(EditList { only: Some(only), ..EditList::default() }));
            return;
        }
        let edit_list = self.edit_list();
        let text = edit_list.keep(text.as_ref());
        edit_list.edits.push(Edit { span, text });
    }

    /// Inserts bytes before position `at`.
    pub fn insert(&mut self, at: u32, text: impl AsRef<[u8]>) {
        self.replace(Span { start: at, end: at }, text);
    }

    /// Removes the bytes of `span`.
    pub fn remove(&mut self, span: Span) {
        self.replace(span, b"");
    }

    /// Sets member `key` of the object at `object` to the raw value `value`. Replaces an existing value, or appends the
    /// member. Does nothing if `object` is not an object.
    pub fn set_member(&mut self, base: &[u8], object: Span, key: &str, value: &[u8]) {
        let edit_list = self.edit_list();
        let value = edit_list.keep(value);
        edit_list.edit_member(base, object, key, Some(value));
    }

    /// Removes member `key` of the object at `object`, along with its comma, if it exists.
    pub fn remove_member(&mut self, base: &[u8], object: Span, key: &str) {
        self.edit_list().edit_member(base, object, key, None);
    }

    /// Returns `true` if an edit sets a member of this name in any object.
    #[must_use]
    pub fn sets_member(&self, key: &str) -> bool {
        let Some(edit_list) = &self.0 else { return false };
        let is_set = |edit: &MemberEdit| edit.value.is_some() && json::key_eq(edit.key.of(&edit_list.text), key);
        edit_list.members.iter().any(is_set)
    }

    /// Adds the edits of `other`, which must refer to the same original bytes.
    pub fn append(&mut self, other: &Self) {
        let Some(other) = &other.0 else { return };
        match &other.only {
            Some(only) => self.replace(only.span, only.text()),
            None => self.edit_list().append(other),
        }
    }

    /// Returns `true` if there are no edits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|edit_list| edit_list.is_empty())
    }

    /// Applies the edits. Returns the same buffer if there are none, and otherwise a new buffer of the exact size.
    #[must_use]
    pub fn apply(&self, base: &Bytes) -> Bytes {
        match &self.0 {
            Some(edit_list) => edit_list.apply(base),
            None => base.clone(),
        }
    }

    /// Applies the edits, and fails if any would be lost.
    ///
    /// # Errors
    /// If two edits overlap.
    pub fn apply_all(&self, base: &Bytes) -> Result<Bytes, Overlap> {
        match &self.0 {
            Some(edit_list) => match edit_list.write(base) {
                (_, Some(overlap)) => Err(overlap),
                (bytes, None) => Ok(bytes),
            },
            None => Ok(base.clone()),
        }
    }

    fn edit_list(&mut self) -> &mut EditList {
        let edit_list = self.0.get_or_insert_default();
        if let Some(only) = edit_list.only.take() {
            let text = edit_list.keep(only.text());
            edit_list.edits.push(Edit { span: only.span, text });
        }
        edit_list
    }
}

impl EditList {
    fn append(&mut self, other: &Self) {
        let by = self.text.len() as u32;
        self.text.extend_from_slice(&other.text);
        self.edits.extend(other.edits.iter().map(|edit| Edit { text: edit.text.shift(by), ..*edit }));
        self.members.extend(other.members.iter().map(|edit| MemberEdit {
            key: edit.key.shift(by),
            value: edit.value.map(|value| value.shift(by)),
            ..*edit
        }));
    }

    fn is_empty(&self) -> bool {
        self.only.is_none() && self.edits.is_empty() && self.members.is_empty()
    }

    fn apply(&self, base: &Bytes) -> Bytes {
        self.write(base).0
    }

    /// Returns the edited bytes, and the first edit that was dropped because of an overlap.
    fn write(&self, base: &Bytes) -> (Bytes, Option<Overlap>) {
        if let Some(only) = &self.only {
            let edit = Edit { span: only.span, text: Span::new(0, only.text().len()) };
            return (write(base, &[edit], only.text()), None);
        }
        if self.is_empty() {
            return (base.clone(), None);
        }
        if let ([only], []) = (&self.edits[..], &self.members[..]) {
            return (write(base, std::slice::from_ref(only), &self.text), None);
        }
        if self.members.is_empty() {
            let (edits, overlap) = without_overlaps(self.edits.clone());
            return (write(base, &edits, &self.text), overlap);
        }
        let mut text = self.text.clone();
        let mut edits = self.edits.clone();
        for (index, first) in self.members.iter().enumerate() {
            if self.members[..index].iter().all(|earlier| earlier.object != first.object) {
                self.resolve(base, first.object, &mut edits, &mut text);
            }
        }
        let (edits, overlap) = without_overlaps(edits);
        (write(base, &edits, &text), overlap)
    }

    fn edit_member(&mut self, base: &[u8], object: Span, key: &str, value: Option<Span>) {
        let bytes = object.of(base);
        if bytes.get(json::skip_whitespace(bytes, 0)) != Some(&b'{') {
            return;
        }
        let start = self.text.len();
        json::write_quoted(&mut self.text, key);
        let key = Span::new(start, self.text.len());
        let key_bytes = key.of(&self.text);
        let same = |edit: &&mut MemberEdit| edit.object == object && edit.key.of(&self.text) == key_bytes;
        match self.members.iter_mut().find(same) {
            Some(earlier) => earlier.value = value,
            None => self.members.push(MemberEdit { object, key, value }),
        }
    }

    fn keep(&mut self, text: &[u8]) -> Span {
        let start = self.text.len();
        self.text.extend_from_slice(text);
        Span::new(start, self.text.len())
    }

    /// Resolves the member edits of one object into plain edits.
    fn resolve(&self, base: &[u8], object: Span, edits: &mut Vec<Edit>, text: &mut Vec<u8>) {
        let bytes = object.of(base);
        let wanted: Vec<&MemberEdit> = self.members.iter().filter(|edit| edit.object == object).collect();
        let mut found = vec![false; wanted.len()];
        let mut last_kept: Option<Span> = None;
        // Start of a run of removed members that reaches to the last member seen.
        let mut removing: Option<Span> = None;
        for member in json::members(bytes) {
            let (key, whole) = (member.key.of(bytes), member.whole.shift(object.start));
            let change = wanted.iter().position(|edit| same_key(key, edit.key.of(&self.text)));
            if let Some(index) = change {
                found[index] = true;
            }
            match change.map(|index| wanted[index].value) {
                Some(None) => {
                    let start = removing.or(last_kept.map(after)).map_or(whole.start, |span| span.start);
                    removing = Some(Span { start, end: whole.end });
                    continue;
                }
                Some(Some(value)) => edits.push(Edit { span: member.value.shift(object.start), text: value }),
                None => {}
            }
            if let Some(mut gone) = removing.take() {
                if last_kept.is_none() {
                    gone.end = whole.start;
                }
                edits.push(Edit { span: gone, text: Span::default() });
            }
            last_kept = Some(whole);
        }
        let added = added_members(&wanted, &found, last_kept.is_some(), &self.text, text);
        let span = match (removing, last_kept) {
            (Some(gone), _) => gone,
            (None, Some(last)) => after(last),
            (None, None) => after_bracket(bytes, object),
        };
        if !added.is_empty() || !span.is_empty() {
            edits.push(Edit { span, text: added });
        }
    }
}

/// Writes the new members. Returns their span in `text`.
fn added_members(wanted: &[&MemberEdit], found: &[bool], comma: bool, kept: &[u8], text: &mut Vec<u8>) -> Span {
    let start = text.len();
    let mut comma = comma;
    for (edit, found) in wanted.iter().zip(found) {
        let (Some(value), false) = (edit.value, *found) else {
            continue;
        };
        if comma {
            text.push(b',');
        }
        comma = true;
        text.extend_from_slice(edit.key.of(kept));
        text.push(b':');
        text.extend_from_slice(value.of(kept));
    }
    Span::new(start, text.len())
}

fn same_key(token: &[u8], wanted: &[u8]) -> bool {
    token == wanted
        || (memchr::memchr(b'\\', token).is_some() || memchr::memchr(b'\\', wanted).is_some())
            && json::string(wanted).is_some_and(|wanted| json::key_eq(token, &wanted))
}

fn after(span: Span) -> Span {
    Span { start: span.end, end: span.end }
}

fn after_bracket(bytes: &[u8], object: Span) -> Span {
    let inside = Span::new(json::skip_whitespace(bytes, 0) + 1, 0).start.saturating_add(object.start);
    Span { start: inside, end: inside }
}

/// Sorts the edits and drops those that overlap an earlier one. Also returns the first overlap.
fn without_overlaps(edits: Vec<Edit>) -> (Vec<Edit>, Option<Overlap>) {
    let mut kept: Vec<Edit> = Vec::with_capacity(edits.len());
    let mut overlap = None;
    for edit in edits {
        let order = (edit.span.start, edit.span.end);
        let place = kept.partition_point(|other| (other.span.start, other.span.end) <= order);
        let before = place.checked_sub(1).and_then(|index| kept.get(index));
        let overlaps = before.is_some_and(|other| other.span.end > edit.span.start)
            || kept.get(place).is_some_and(|other| other.span.start < edit.span.end);
        if overlaps {
            overlap.get_or_insert(Overlap { at: edit.span.start });
        } else {
            kept.insert(place, edit);
        }
    }
    (kept, overlap)
}

/// Applies sorted edits without overlaps. Skips edits outside of `base`.
fn write(base: &[u8], edits: &[Edit], text: &[u8]) -> Bytes {
    let fits = |edit: &&Edit| edit.span.end as usize <= base.len();
    let (removed, added) = edits
        .iter()
        .filter(fits)
        .fold((0, 0), |(removed, added), edit| (removed + edit.span.len(), added + edit.text.len()));
    let mut out = Vec::with_capacity(base.len() - removed + added);
    let mut copied = 0;
    for edit in edits.iter().filter(fits) {
        out.extend_from_slice(base.get(copied..edit.span.start as usize).unwrap_or(&[]));
        out.extend_from_slice(edit.text.of(text));
        copied = edit.span.end as usize;
    }
    out.extend_from_slice(base.get(copied..).unwrap_or(&[]));
    Bytes::from(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(base: &str, change: impl Fn(&mut Edits, &[u8], Span)) -> String {
        let bytes = Bytes::copy_from_slice(base.as_bytes());
        let mut edits = Edits::new();
        change(&mut edits, &bytes, Span::new(0, base.len()));
        String::from_utf8(edits.apply(&bytes).to_vec()).unwrap()
    }

    #[test]
    fn without_changes_the_bytes_are_the_same() {
        let base = Bytes::from_static(b"abc");
        assert!(Edits::new().is_empty());
        assert_eq!(Edits::new().apply(&base).as_ptr(), base.as_ptr());
    }

    #[test]
    fn replaces_inserts_and_removes_in_any_order() {
        let out = apply("0123456789", |edits, _, _| {
            edits.remove(Span::new(8, 10));
            edits.replace(Span::new(1, 3), "AB");
            edits.insert(5, b"x");
            edits.insert(5, Bytes::from_static(b"y"));
            edits.insert(0, String::from("<"));
        });
        assert_eq!(out, "<0AB34xy567");
    }

    #[test]
    fn one_change_is_like_many_whatever_its_length() {
        for length in [0, 1, SHORT - 1, SHORT, SHORT + 1, 100] {
            let text = "x".repeat(length);
            assert_eq!(apply("0123", |edits, _, _| edits.replace(Span::new(1, 2), &text)), format!("0{text}23"));
            let two = |edits: &mut Edits, _: &[u8], _: Span| {
                let mut other = Edits::new();
                other.replace(Span::new(1, 2), &text);
                edits.append(&other);
                assert!(!edits.is_empty());
                edits.insert(3, "y");
                edits.append(&other);
            };
            assert_eq!(apply("0123", two), format!("0{text}2y3"));
            let member = |edits: &mut Edits, base: &[u8], whole: Span| {
                edits.replace(Span::new(5, 6), &text);
                edits.set_member(base, whole, "b", b"2");
            };
            assert_eq!(apply(r#"{"a":1}"#, member), format!(r#"{{"a":{text},"b":2}}"#));
        }
        assert_eq!(apply("0123", |edits, _, _| edits.replace(Span::new(1, 9), "x")), "0123");
    }

    #[test]
    fn of_overlapping_changes_the_first_added_wins() {
        let out = apply("0123456789", |edits, _, _| {
            edits.replace(Span::new(2, 5), "A");
            edits.replace(Span::new(4, 6), "B");
            edits.replace(Span::new(0, 9), "C");
            edits.insert(3, "D");
            edits.insert(5, "e");
            edits.insert(2, "b");
            edits.replace(Span::new(8, 99), "F");
            edits.replace(Span { start: 9, end: 7 }, "G");
        });
        assert_eq!(out, "01bAe56789");
    }

    #[test]
    fn sets_members() {
        let set = |base: &str, key: &str, value: &str| {
            apply(base, |edits, b, o| edits.set_member(b, o, key, value.as_bytes()))
        };
        assert_eq!(set("{}", "a", "1"), r#"{"a":1}"#);
        assert_eq!(set("{ }", "a", "1"), r#"{"a":1 }"#);
        assert_eq!(set(r#"{"b":2}"#, "a", "1"), r#"{"b":2,"a":1}"#);
        assert_eq!(set(r#"{ "b" : 2 }"#, "a", "1"), r#"{ "b" : 2,"a":1 }"#);
        assert_eq!(set(r#"{ "a" : 2 }"#, "a", "1"), r#"{ "a" : 1 }"#);
        assert_eq!(set(r#"{"\u0061":2}"#, "a", "1"), r#"{"\u0061":1}"#);
        assert_eq!(set(r#"{"a\"":2}"#, "a\"", "1"), r#"{"a\"":1}"#);
        assert_eq!(set("[]", "a", "1"), "[]");
        assert_eq!(set("7", "a", "1"), "7");
    }

    #[test]
    fn removes_members_with_their_comma() {
        let remove = |keys: &[&str]| {
            apply(r#"{ "a":1, "b":2 ,"c":3 }"#, |edits, b, o| {
                keys.iter().for_each(|key| edits.remove_member(b, o, key))
            })
        };
        assert_eq!(remove(&["a"]), r#"{ "b":2 ,"c":3 }"#);
        assert_eq!(remove(&["b"]), r#"{ "a":1 ,"c":3 }"#);
        assert_eq!(remove(&["c"]), r#"{ "a":1, "b":2 }"#);
        assert_eq!(remove(&["a", "b"]), r#"{ "c":3 }"#);
        assert_eq!(remove(&["a", "c"]), r#"{ "b":2 }"#);
        assert_eq!(remove(&["c", "b", "a"]), "{  }");
        assert_eq!(remove(&["nope"]), r#"{ "a":1, "b":2 ,"c":3 }"#);
    }

    #[test]
    fn several_changes_to_one_object_fit_together() {
        let out = apply("{}", |edits, b, o| {
            edits.set_member(b, o, "a", b"1");
            edits.set_member(b, o, "b", b"2");
            edits.set_member(b, o, "a", b"3");
        });
        assert_eq!(out, r#"{"a":3,"b":2}"#);
        let out = apply(r#"{"x":1}"#, |edits, b, o| {
            edits.remove_member(b, o, "x");
            edits.set_member(b, o, "b", b"2");
            edits.set_member(b, o, "c", b"3");
        });
        assert_eq!(out, r#"{"b":2,"c":3}"#);
        let out = apply(r#"{"x":1,"y":2}"#, |edits, b, o| {
            edits.remove_member(b, o, "y");
            edits.set_member(b, o, "z", b"3");
            edits.set_member(b, o, "x", b"[]");
        });
        assert_eq!(out, r#"{"x":[],"z":3}"#);
    }

    #[test]
    fn nested_objects_are_changed_together() {
        let base = r#"{"params":{"_meta":{}},"id":1}"#;
        let out = apply(base, |edits, b, o| {
            let meta = json::path(b, &["params", "_meta"]).unwrap();
            edits.set_member(b, meta, "t", b"1");
            edits.set_member(b, json::member(b, "params").unwrap(), "x", b"2");
            edits.replace(json::member(b, "id").unwrap(), b"99");
            edits.set_member(b, o, "end", b"true");
        });
        assert_eq!(out, r#"{"params":{"_meta":{"t":1},"x":2},"id":99,"end":true}"#);
    }
}
