//! Where the members of a message's inner objects stand, noted while the message is scanned.
//!
//! Routing asks a message for the same few members again and again: those of `params` or `result`, and of `_meta` in
//! them. Noted once, they need no further walk.

use crate::json::{self, Members};
use crate::limits::Limits;
use crate::meta;
use crate::parts::{EnvelopeMember, Parts};
use crate::scanner::Sink;
use crate::span::Span;
use std::borrow::Cow;

/// Most members that are noted. A message with more of them is walked where one is asked for.
const ROOM: usize = 12;

/// An object inside a message.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) enum Owner {
    #[default]
    Nobody,
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

/// The noted members, in the order in which they stand.
#[derive(Clone, Default, Debug)]
pub(crate) struct Outline {
    /// The limits that the message was held to.
    pub checked: Option<Limits>,
    entries: [Entry; ROOM],
    count: usize,
    /// There are more members than room.
    cut: bool,
}

impl Outline {
    /// The members of an inner object whose value stands at `object`.
    pub fn members<'a>(&'a self, owner: Owner, bytes: &'a [u8], object: Option<Span>) -> InnerMembers<'a> {
        let way = if self.is_whole() {
            Way::Noted { entries: self.entries.get(..self.count).unwrap_or(&[]).iter(), owner }
        } else {
            let object = object.unwrap_or_default();
            Way::Walk { members: json::members(object.of(bytes)), start: object.start }
        };
        InnerMembers { bytes, way }
    }

    /// The value of the first member of this name. Compares lengths first, which is cheaper than a walk over names.
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

    /// Whether every member is noted.
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

/// One member of an inner object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InnerMember<'a> {
    /// What the key means, without quotes.
    pub name: Cow<'a, [u8]>,
    /// Where the key stands in the message, with its quotes.
    pub key: Span,
    /// Where the value stands in the message.
    pub value: Span,
}

impl InnerMember<'_> {
    /// From the opening quote of the key to the end of the value.
    #[must_use]
    pub fn whole(&self) -> Span {
        Span { start: self.key.start, end: self.value.end }
    }
}

/// The members of an object inside a message, in order.
#[derive(Clone, Debug)]
pub struct InnerMembers<'a> {
    bytes: &'a [u8],
    way: Way<'a>,
}

#[derive(Clone, Debug)]
enum Way<'a> {
    Noted { entries: std::slice::Iter<'a, Entry>, owner: Owner },
    Walk { members: Members<'a>, start: u32 },
}

impl<'a> Iterator for InnerMembers<'a> {
    type Item = InnerMember<'a>;

    #[inline]
    fn next(&mut self) -> Option<InnerMember<'a>> {
        loop {
            let (key, value, escaped) = match &mut self.way {
                Way::Noted { entries, owner } => {
                    let entry = entries.find(|entry| entry.owner == *owner)?;
                    (entry.key, entry.value, entry.escaped)
                }
                Way::Walk { members, start } => {
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

/// What a key means; nothing for one with a broken escape.
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

/// Notes the parts and the inner members of a message while it is scanned.
pub(crate) struct Notes<'a> {
    parts: &'a mut Parts,
    outline: &'a mut Outline,
    part: Option<EnvelopeMember>,
    /// The inner object that members at depth 2 belong to, and the one of those at depth 3.
    owners: [Owner; 2],
    last: [Option<usize>; 2],
}

impl<'a> Notes<'a> {
    pub fn new(parts: &'a mut Parts, outline: &'a mut Outline) -> Self {
        Self { parts, outline, part: None, owners: [Owner::Nobody; 2], last: [None; 2] }
    }
}

impl Sink for Notes<'_> {
    const DEPTH: usize = 3;

    #[inline]
    fn member(&mut self, depth: usize, bytes: &[u8], key: Span, escaped: bool, value: usize) {
        let value = Span::new(value, value);
        if depth == 1 {
            self.part = name(key.of(bytes), escaped).as_deref().and_then(EnvelopeMember::named);
            let body = match self.part {
                Some(EnvelopeMember::Params) => Owner::Params,
                Some(EnvelopeMember::Result) => Owner::Result,
                _ => Owner::Nobody,
            };
            self.owners = [body, Owner::Nobody];
            if let Some(part) = self.part {
                // The scan refuses a member that occurs twice.
                self.parts.set(part, value);
            }
            return;
        }
        let owner = self.owners[usize::from(depth == 3)];
        if depth == 2 {
            let is_meta = |name: Cow<'_, [u8]>| *name == *meta::META.as_bytes();
            let own = owner != Owner::Nobody && name(key.of(bytes), escaped).is_some_and(is_meta);
            self.owners[1] = match owner {
                Owner::Params if own => Owner::ParamsMeta,
                Owner::Result if own => Owner::ResultMeta,
                _ => Owner::Nobody,
            };
        }
        if owner != Owner::Nobody {
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
            2 if self.owners[0] != Owner::Nobody => self.outline.end(self.last[0], at),
            3 if self.owners[1] != Owner::Nobody => self.outline.end(self.last[1], at),
            _ => {}
        }
    }
}
