//! Positions of the members of a message's inner objects, recorded during the scan.
//!
//! Routing looks up the same few members again and again: those of `params` or `result`, and of `_meta` in them.
//! Recorded once, they need no further walk.

use crate::json::{self, Members};
use crate::limits::Limits;
use crate::meta;
use crate::parts::{EnvelopeMember, Parts};
use crate::scanner::Sink;
use crate::span::Span;
use std::borrow::Cow;

/// Maximum number of recorded members. Lookups in a message with more of them walk it again.
const MAX_ENTRIES: usize = 12;

/// Inner object of a message.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) enum Owner {
    #[default]
    Other,
    Params,
    Result,
    ParamsMeta,
    ResultMeta,
}

#[derive(Copy, Clone, Default, Debug)]
struct Entry {
    key: Span,
    value: Span,
    owner: Owner,
    escaped: bool,
}

/// Recorded members in order.
#[derive(Clone, Default, Debug)]
pub(crate) struct Outline {
    /// Limits that the message was checked against.
    pub checked: Option<Limits>,
    entries: [Entry; MAX_ENTRIES],
    count: usize,
    /// Set if there are more members than fit.
    cut: bool,
}

impl Outline {
    /// Iterates over the members of an inner object, whose value is at `object`.
    pub fn members<'a>(&'a self, owner: Owner, bytes: &'a [u8], object: Option<Span>) -> InnerMembers<'a> {
        let way = if self.is_whole() {
            MemberSource::Noted { entries: self.entries.get(..self.count).unwrap_or(&[]).iter(), owner }
        } else {
            let object = object.unwrap_or_default();
            MemberSource::Walk { members: json::members(object.of(bytes)), start: object.start }
        };
        InnerMembers { bytes, way }
    }

    /// Finds the value of the first member with this name. Compares lengths first, which is cheaper than comparing
    /// names.
    pub fn find(&self, owner: Owner, bytes: &[u8], object: Option<Span>, wanted: &str) -> Option<Span> {
        if !self.is_whole() {
            let named = |member: &InnerMember<'_>| *member.name == *wanted.as_bytes();
            return self.members(owner, bytes, object).find(named).map(|member| member.value);
        }
        let is_wanted = |entry: &&Entry| {
            entry.owner == owner
                && (entry.escaped || entry.key.len() == wanted.len() + 2)
                && name(entry.key.of(bytes), entry.escaped).is_some_and(|name| *name == *wanted.as_bytes())
        };
        self.entries.get(..self.count).unwrap_or(&[]).iter().find(is_wanted).map(|entry| entry.value)
    }

    /// Returns `true` if every member is recorded.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.checked.is_some() && !self.cut
    }

    fn push(&mut self, entry: Entry) -> Option<usize> {
        match self.entries.get_mut(self.count) {
            Some(place) => {
                *place = entry;
                self.count += 1;
                Some(self.count - 1)
            }
            None => {
                self.cut = true;
                None
            }
        }
    }

    fn end(&mut self, index: Option<usize>, at: usize) {
        if let Some(entry) = index.and_then(|index| self.entries.get_mut(index)) {
            entry.value.end = at as u32;
        }
    }
}

/// Member of an inner object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InnerMember<'a> {
    /// Decoded key without quotes.
    pub name: Cow<'a, [u8]>,
    /// Span of the key in the message, including quotes.
    pub key: Span,
    /// Span of the value in the message.
    pub value: Span,
}

impl InnerMember<'_> {
    /// Returns the span from the key's opening quote to the end of the value.
    #[must_use]
    pub fn whole(&self) -> Span {
        Span { start: self.key.start, end: self.value.end }
    }
}

/// Iterator over the members of an inner object, in order.
#[derive(Clone, Debug)]
pub struct InnerMembers<'a> {
    bytes: &'a [u8],
    way: MemberSource<'a>,
}

#[derive(Clone, Debug)]
enum MemberSource<'a> {
    Noted { entries: std::slice::Iter<'a, Entry>, owner: Owner },
    Walk { members: Members<'a>, start: u32 },
}

impl<'a> Iterator for InnerMembers<'a> {
    type Item = InnerMember<'a>;

    #[inline]
    fn next(&mut self) -> Option<InnerMember<'a>> {
        loop {
            let (key, value, escaped) = match &mut self.way {
                MemberSource::Noted { entries, owner } => {
                    let entry = entries.find(|entry| entry.owner == *owner)?;
                    (entry.key, entry.value, entry.escaped)
                }
                MemberSource::Walk { members, start } => {
                    let member = members.next()?;
                    let key = member.key.shift(*start);
                    (key, member.value.shift(*start), memchr::memchr(b'\\', key.of(self.bytes)).is_some())
                }
            };
            if let Some(name) = name(key.of(self.bytes), escaped) {
                return Some(InnerMember { name, key, value });
            }
        }
    }
}

/// Decodes a key. Returns `None` if it has a broken escape.
#[inline]
pub(crate) fn name(token: &[u8], escaped: bool) -> Option<Cow<'_, [u8]>> {
    if escaped {
        return json::string(token).map(|text| Cow::Owned(text.into_owned().into_bytes()));
    }
    match token {
        [b'"', name @ .., b'"'] => Some(Cow::Borrowed(name)),
        _ => None,
    }
}

/// Sink that records envelope members and inner members.
pub(crate) struct OutlineBuilder<'a> {
    parts: &'a mut Parts,
    outline: &'a mut Outline,
    part: Option<EnvelopeMember>,
    /// Inner objects that own the members at depth 2 and at depth 3.
    owners: [Owner; 2],
    last: [Option<usize>; 2],
}

impl<'a> OutlineBuilder<'a> {
    pub fn new(parts: &'a mut Parts, outline: &'a mut Outline) -> Self {
        Self { parts, outline, part: None, owners: [Owner::Other; 2], last: [None; 2] }
    }
}

impl Sink for OutlineBuilder<'_> {
    const DEPTH: usize = 3;

    #[inline]
    fn member(&mut self, depth: usize, bytes: &[u8], key: Span, escaped: bool, value: usize) {
        let value = Span::new(value, value);
        if depth == 1 {
            self.part = name(key.of(bytes), escaped).as_deref().and_then(EnvelopeMember::named);
            let body = match self.part {
                Some(EnvelopeMember::Params) => Owner::Params,
                Some(EnvelopeMember::Result) => Owner::Result,
                _ => Owner::Other,
            };
            self.owners = [body, Owner::Other];
            if let Some(part) = self.part {
                // The scan rejects duplicate members.
                self.parts.set(part, value);
            }
            return;
        }
        let owner = self.owners[usize::from(depth == 3)];
        if depth == 2 {
            let is_meta = |name: Cow<'_, [u8]>| *name == *meta::META.as_bytes();
            let own = owner != Owner::Other && name(key.of(bytes), escaped).is_some_and(is_meta);
            self.owners[1] = match owner {
                Owner::Params if own => Owner::ParamsMeta,
                Owner::Result if own => Owner::ResultMeta,
                _ => Owner::Other,
            };
        }
        if owner != Owner::Other {
            self.last[usize::from(depth == 3)] = self.outline.push(Entry { key, value, owner, escaped });
        }
    }

    #[inline]
    fn end(&mut self, depth: usize, at: usize) {
        match depth {
            1 => {
                if let Some(part) = self.part {
                    self.parts.end(part, at);
                }
            }
            2 if self.owners[0] != Owner::Other => self.outline.end(self.last[0], at),
            3 if self.owners[1] != Owner::Other => self.outline.end(self.last[1], at),
            _ => {}
        }
    }
}
