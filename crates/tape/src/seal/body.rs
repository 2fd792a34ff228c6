//! Commitment to a message: one hash, from which values can be removed later without changing it.
//!
//! The leaves are the values below the committed members. The frame is the message without them. Each leaf is hashed
//! with a salt of its own, and the commitment is a hash of the frame and of these hashes.

use super::chain::Draft;
use super::salts::{Salt, Salts};
use bytes::Bytes;
use memchr::{memchr, memchr2};
use signalbox_seal::{ChainHash, sha256, sha256_of};
use signalbox_wire::{Envelope, json};
use std::ops::Range;

/// Maximum number of leaves of one message; values after them belong to its frame.
pub const MAX_LEAVES: usize = 256;
/// Maximum nesting of a message that has leaves.
const MAX_DEPTH: usize = 128;
/// Domain separators of the hashes of leaves and of bodies.
const LEAF: u8 = 1;
const BODY: u8 = 2;
/// Byte that stands for a leaf in the frame. A message that contains this byte has no leaves.
const CUT: u8 = 0;
const CUT_BYTES: [u8; 1] = [CUT];
/// Size above which bodies are hashed piece by piece instead of being copied.
const MAX_COPIED: usize = 4 << 10;
/// Maximum size of a buffer that is kept for the next body.
const MAX_KEPT: usize = 1 << 20;

/// Finds the leaves of a message: all values below the committed members that are neither objects nor arrays, in order.
/// A message that is not JSON, in the loose sense of `docs/seal.md`, has none.
#[must_use]
pub fn leaves(body: &[u8], commit: &[Vec<String>]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    find(body, commit, &mut found);
    found
}

fn find(body: &[u8], commit: &[Vec<String>], found: &mut Vec<Range<usize>>) {
    found.clear();
    if commit.is_empty() || memchr(CUT, body).is_some() {
        return;
    }
    let mut walk = Walk { body, at: 0, commit, found };
    walk.space();
    let whole = walk.value(Place { names: 0, alive: u64::MAX, inside: false }, 0).map(|()| {
        walk.space();
        walk.at == body.len()
    });
    if whole != Some(true) {
        found.clear();
    }
}

/// Table of the bytes that end a number or a word.
const ENDS_BARE: [bool; 256] = {
    let (mut ends, bytes, mut place) = ([false; 256], b" \t\n\r,:\"{}[]", 0);
    while place < bytes.len() {
        ends[bytes[place] as usize] = true;
        place += 1;
    }
    ends
};

/// Position of the walk relative to the committed members.
#[derive(Copy, Clone)]
struct Place {
    /// Number of names on the path to this position.
    names: usize,
    /// Bit set of the committed paths that begin with these names.
    alive: u64,
    /// True below a committed member.
    inside: bool,
}

struct Walk<'a> {
    body: &'a [u8],
    at: usize,
    commit: &'a [Vec<String>],
    found: &'a mut Vec<Range<usize>>,
}

impl Walk<'_> {
    fn peek(&self) -> Option<u8> {
        self.body.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Consumes this byte and the space after it; `None` if another byte follows.
    fn over(&mut self, byte: u8) -> Option<()> {
        (self.peek() == Some(byte)).then(|| self.at += 1)?;
        self.space();
        Some(())
    }

    fn value(&mut self, place: Place, depth: usize) -> Option<()> {
        let start = self.at;
        match self.peek()? {
            b'{' | b'[' if depth == MAX_DEPTH => return None,
            b'{' => return self.object(place, depth),
            b'[' => return self.array(place, depth),
            b'"' => self.string()?,
            _ => self.bare()?,
        }
        if place.inside && self.found.len() < MAX_LEAVES {
            self.found.push(start..self.at);
        }
        Some(())
    }

    fn object(&mut self, place: Place, depth: usize) -> Option<()> {
        self.over(b'{')?;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Some(());
        }
        loop {
            let start = self.at;
            self.string()?;
            let inner = self.below(place, start..self.at);
            self.space();
            self.over(b':')?;
            self.value(inner, depth + 1)?;
            self.space();
            if self.over(b',').is_none() {
                (self.peek() == Some(b'}')).then(|| self.at += 1)?;
                return Some(());
            }
        }
    }

    fn array(&mut self, place: Place, depth: usize) -> Option<()> {
        self.over(b'[')?;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Some(());
        }
        loop {
            self.value(Place { alive: 0, ..place }, depth + 1)?;
            self.space();
            if self.over(b',').is_none() {
                (self.peek() == Some(b']')).then(|| self.at += 1)?;
                return Some(());
            }
        }
    }

    /// Returns the position of the member with this name.
    fn below(&self, place: Place, name: Range<usize>) -> Place {
        if place.inside || place.alive == 0 {
            return Place { alive: 0, ..place };
        }
        let name = self.body.get(name).and_then(json::string);
        let (names, mut alive, mut inside) = (place.names + 1, 0, false);
        for (bit, path) in self.commit.iter().enumerate().take(64) {
            let fits = place.alive >> bit & 1 == 1 && path.get(place.names).map(String::as_str) == name.as_deref();
            if fits && name.is_some() {
                alive |= 1 << bit;
                inside |= path.len() == names;
            }
        }
        Place { names, alive, inside }
    }

    fn string(&mut self) -> Option<()> {
        (self.peek() == Some(b'"')).then(|| self.at += 1)?;
        loop {
            let rest = self.body.get(self.at..)?;
            let next = memchr2(b'"', b'\\', rest)?;
            let is_end = rest.get(next) == Some(&b'"');
            self.at += next + if is_end { 1 } else { 2 };
            if is_end {
                return Some(());
            }
        }
    }

    /// Consumes a number, a word, or any other unquoted text.
    fn bare(&mut self) -> Option<()> {
        let start = self.at;
        let rest = self.body.get(start..).unwrap_or_default();
        self.at += rest.iter().position(|byte| ENDS_BARE[usize::from(*byte)]).unwrap_or(rest.len());
        (self.at > start).then_some(())
    }
}

/// Returns the hash of one leaf.
pub(super) fn leaf_hash(salt: &Salt, value: &[u8], scratch: &mut Vec<u8>) -> ChainHash {
    scratch.clear();
    scratch.push(LEAF);
    scratch.extend_from_slice(salt);
    scratch.extend_from_slice(value);
    sha256(scratch)
}

/// Returns the commitment to a body with these leaves.
pub(super) fn commitment(
    body: &[u8],
    leaves: &[Range<usize>],
    salt: &Salt,
    hashes: &[ChainHash],
    scratch: &mut Vec<u8>,
) -> ChainHash {
    if body.len() > MAX_COPIED {
        return large_commitment(body, leaves, salt, hashes);
    }
    scratch.clear();
    scratch.push(BODY);
    scratch.extend_from_slice(salt);
    let frame = scratch.len();
    let mut from = 0;
    for leaf in leaves {
        scratch.extend_from_slice(body.get(from..leaf.start).unwrap_or_default());
        scratch.push(CUT);
        from = leaf.end;
    }
    scratch.extend_from_slice(body.get(from..).unwrap_or_default());
    let frame = scratch.len() - frame;
    scratch.extend_from_slice(hashes.as_flattened());
    scratch.extend_from_slice(&(frame as u64).to_be_bytes());
    scratch.extend_from_slice(&(hashes.len() as u32).to_be_bytes());
    sha256(scratch)
}

/// Computes the same hash without copying the body.
fn large_commitment(body: &[u8], leaves: &[Range<usize>], salt: &Salt, hashes: &[ChainHash]) -> ChainHash {
    let cut: usize = leaves.iter().map(|leaf| leaf.len() - CUT_BYTES.len()).sum();
    let (length, count) = (((body.len() - cut) as u64).to_be_bytes(), (hashes.len() as u32).to_be_bytes());
    let ends = leaves.iter().map(|leaf| leaf.end);
    let between = std::iter::once(0).chain(ends).zip(leaves.iter().map(|leaf| leaf.start).chain([body.len()]));
    let frame = between.enumerate().flat_map(|(place, (from, to))| {
        let before: &[u8] = if place == 0 { &[] } else { &CUT_BYTES };
        [before, body.get(from..to).unwrap_or_default()]
    });
    sha256_of([&[BODY][..], salt].into_iter().chain(frame).chain([hashes.as_flattened(), &length, &count]))
}

/// Difference between a body and an earlier one with the same beginning and end.
#[derive(Copy, Clone, Debug)]
pub(crate) struct BodyDifference<'a> {
    /// Number of equal bytes at the beginning.
    pub(crate) prefix: u64,
    /// Number of equal bytes at the end.
    pub(crate) suffix: u64,
    /// Bytes between the equal ones.
    pub(crate) middle: &'a [u8],
    /// Number of the entry with the earlier body.
    pub(crate) base_entry: u64,
    /// Number of the entry with this body.
    pub(crate) entry: u64,
}

/// A body with its commitment, and its leaves with their hashes.
#[derive(Debug)]
pub(crate) struct SealedBody {
    pub(crate) bytes: Bytes,
    commitment: ChainHash,
    leaves: Box<[(Range<usize>, ChainHash)]>,
}

impl SealedBody {
    /// Returns true if replacing `changed` by `middle` certainly preserves the leaves: both bodies are messages that
    /// differ only in their numeric id.
    fn has_leaves_of(&self, changed: Range<usize>, middle: &[u8]) -> bool {
        if !middle.iter().all(u8::is_ascii_digit) {
            return false;
        }
        let message = Envelope::parse(self.bytes.clone());
        let Some(id) = message.ok().and_then(|message| message.id_span()).map(|id| id.range()) else { return false };
        let is_number = self.bytes.get(id.clone()).is_some_and(|id| id.iter().all(u8::is_ascii_digit));
        let is_within = id.start <= changed.start && changed.end <= id.end;
        let is_left = id.len() + middle.len() > changed.len();
        let is_outside = |leaf: &Range<usize>| leaf.end <= id.start || leaf.start >= id.end;
        is_number && is_within && is_left && self.leaves.iter().all(|(leaf, _)| is_outside(leaf))
    }
}

/// Commits to bodies one by one, and reuses its memory.
#[derive(Debug)]
pub(crate) struct BodySealer {
    salts: Salts,
    commit: Vec<Vec<String>>,
    leaves: Vec<Range<usize>>,
    made: Vec<Salt>,
    hashes: Vec<ChainHash>,
    scratch: Vec<u8>,
    joined: Vec<u8>,
}

impl BodySealer {
    /// Creates a sealer with salts of this seed and leaves below these members. Returns `None` if the seed is invalid.
    pub(crate) fn new(seed: &[u8], commit: &[Vec<String>]) -> Option<Self> {
        Some(Self {
            salts: Salts::new(seed)?,
            commit: commit.to_vec(),
            leaves: Vec::new(),
            made: Vec::new(),
            hashes: Vec::new(),
            scratch: Vec::new(),
            joined: Vec::new(),
        })
    }

    /// Stores the latest commitment for bodies that refer to this one.
    pub(crate) fn last_sealed(&self, bytes: Bytes, commitment: ChainHash) -> SealedBody {
        let leaves = self.leaves.iter().cloned().zip(self.hashes.iter().copied()).collect();
        SealedBody { bytes, commitment, leaves }
    }

    /// Commits to a body that shares its beginning and end with `base`. Returns `None` if the lengths do not fit. The
    /// body has its own salts, or those of the base if the leaves are the same and need not be hashed again.
    pub(crate) fn commit_like(&mut self, base: &SealedBody, difference: &BodyDifference<'_>) -> Option<Draft> {
        let BodyDifference { middle, base_entry, entry, .. } = *difference;
        let prefix = usize::try_from(difference.prefix).ok()?;
        let suffix = usize::try_from(difference.suffix).ok()?;
        let end = base.bytes.len().checked_sub(suffix).filter(|end| prefix <= *end)?;
        let (head, tail) = (base.bytes.get(..prefix)?, base.bytes.get(end..)?);
        if middle.is_empty() && prefix == end {
            return Some(Draft { body: base.commitment, salted_as: base_entry });
        }
        let mut joined = std::mem::take(&mut self.joined);
        joined.clear();
        [head, middle, tail].into_iter().for_each(|part| joined.extend_from_slice(part));
        let draft = match base.has_leaves_of(prefix..end, middle) {
            true => {
                self.commit_frame(base, &joined, prefix, base_entry).map(|body| Draft { body, salted_as: base_entry })
            }
            false => self.commit(&joined, entry).map(|body| Draft { body, salted_as: 0 }),
        };
        // A large buffer is not kept, since most bodies are small.
        self.joined = if joined.capacity() <= MAX_KEPT { joined } else { Vec::new() };
        draft
    }

    /// Commits to a body with the same leaves as `base`; the difference at `changed` lies between leaves.
    fn commit_frame(&mut self, base: &SealedBody, body: &[u8], changed: usize, base_entry: u64) -> Option<ChainHash> {
        self.salts.of(base_entry, 1, &mut self.made)?;
        let salt = self.made.first()?;
        self.leaves.clear();
        self.hashes.clear();
        for (leaf, hash) in &base.leaves {
            let shift = |at: usize| if leaf.start < changed { at } else { at + body.len() - base.bytes.len() };
            self.leaves.push(shift(leaf.start)..shift(leaf.end));
            self.hashes.push(*hash);
        }
        Some(commitment(body, &self.leaves, salt, &self.hashes, &mut self.scratch))
    }

    /// Commits to a body with the salts of this entry. Returns `None` if the cryptographic library fails.
    pub(crate) fn commit(&mut self, body: &[u8], entry: u64) -> Option<ChainHash> {
        find(body, &self.commit, &mut self.leaves);
        self.salts.of(entry, self.leaves.len() + 1, &mut self.made)?;
        let (salt, salts) = self.made.split_first()?;
        self.hashes.clear();
        for (leaf, salt) in self.leaves.iter().zip(salts) {
            let value = body.get(leaf.clone()).unwrap_or_default();
            self.hashes.push(leaf_hash(salt, value, &mut self.scratch));
        }
        Some(commitment(body, &self.leaves, salt, &self.hashes, &mut self.scratch))
    }

    /// Returns the salts of the latest commitment: that of the body, then those of its leaves.
    pub(crate) fn last_salts(&self) -> &[Salt] {
        &self.made
    }

    /// Returns the leaves of the latest commitment, each with its hash.
    pub(crate) fn last_leaves(&self) -> impl Iterator<Item = (Range<usize>, &ChainHash)> {
        self.leaves.iter().cloned().zip(&self.hashes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::message::Overlap;
    use signalbox_engine::record::Body;

    fn commit() -> Vec<Vec<String>> {
        vec![vec!["params".to_owned(), "arguments".to_owned()], vec!["result".to_owned()]]
    }

    fn found(body: &str) -> Vec<&str> {
        leaves(body.as_bytes(), &commit()).into_iter().map(|leaf| &body[leaf]).collect()
    }

    #[test]
    fn leaves_are_the_values_below_committed_members() {
        let call = r#"{"id":1,"params":{"name":"x","arguments":{"a":[1,{"b":"two \" }"}],"c":{},"d":null}}}"#;
        assert_eq!(found(call), ["1", r#""two \" }""#, "null"]);
        assert_eq!(found(r#"{"\u0072esult" : true , "error":{"result":1}}"#), ["true"]);
        assert_eq!(found(r#"{"result":[]}"#), [""; 0]);
        assert_eq!(found(r#"{"params":[{"arguments":1}]}"#), [""; 0]);
    }

    #[test]
    fn what_is_no_json_has_no_leaves() {
        for body in ["", "hello", r#"{"result":1"#, r#"{"result":1}}"#, r#"{"result" 1}"#, "{\"result\":\"a\0\"}"] {
            assert_eq!(found(body), [""; 0], "{body}");
        }
        let deep = format!(r#"{{"result":{}1{}}}"#, "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
        assert_eq!(found(&deep), [""; 0]);
        let many = format!(r#"{{"result":[{}1]}}"#, "1,".repeat(MAX_LEAVES));
        assert_eq!(found(&many).len(), MAX_LEAVES);
    }

    #[test]
    fn large_bodies_are_committed_to_alike() {
        let text = "x".repeat(MAX_COPIED);
        for body in [format!(r#"{{"id":1,"result":["a",{{"b":"{text}"}},2]}}"#), format!("{text} no JSON")] {
            let places = leaves(body.as_bytes(), &commit());
            let (salt, mut scratch) = ([7; 16], Vec::new());
            let hashes: Vec<_> =
                places.iter().map(|leaf| leaf_hash(&salt, &body.as_bytes()[leaf.clone()], &mut scratch)).collect();
            let large = commitment(body.as_bytes(), &places, &salt, &hashes, &mut scratch);
            let mut frame = vec![BODY];
            frame.extend_from_slice(&salt);
            let mut from = 0;
            for place in &places {
                frame.extend_from_slice(&body.as_bytes()[from..place.start]);
                frame.push(CUT);
                from = place.end;
            }
            frame.extend_from_slice(&body.as_bytes()[from..]);
            let length = (frame.len() - 17) as u64;
            frame.extend_from_slice(hashes.as_flattened());
            frame.extend_from_slice(&length.to_be_bytes());
            frame.extend_from_slice(&(hashes.len() as u32).to_be_bytes());
            assert_eq!(large, signalbox_seal::sha256(&frame));
        }
    }

    fn difference(prefix: u64, suffix: u64, middle: &[u8]) -> BodyDifference<'_> {
        BodyDifference { prefix, suffix, middle, base_entry: 4, entry: 5 }
    }

    #[test]
    fn a_body_that_is_like_another_is_committed_to_as_itself() {
        let mut sealer = BodySealer::new(&[3; 32], &commit()).unwrap();
        let whole = r#"{"jsonrpc":"2.0","result":["a",{"b":2}],"id":10,"x":{"id":10}}"#;
        let commitment = sealer.commit(whole.as_bytes(), 4).unwrap();
        let base = sealer.last_sealed(Bytes::from(whole), commitment);
        // What stands where the id stood, and whether the salts of the first serve.
        let ids =
            [("10", true), ("1", true), ("77", true), ("1000000", true), ("-1", false), ("\"10\"", false), ("", false)];
        for (id, shares) in ids {
            let other = whole.replacen("\"id\":10", &format!("\"id\":{id}"), 1);
            let overlap = Overlap::of(whole.as_bytes(), other.as_bytes());
            let Some(Body::Like { prefix, suffix, middle, .. }) = overlap.like(other.as_bytes()) else {
                panic!("{other}")
            };
            let like = sealer.commit_like(&base, &difference(prefix, suffix, &middle)).unwrap();
            assert_eq!(like.salted_as, if shares { 4 } else { 0 }, "{other}");
            let salted_as = if shares { 4 } else { 5 };
            assert_eq!(Some(like.body), sealer.commit(other.as_bytes(), salted_as), "{other}");
        }
        let other = whole.replace("\"b\":2", "\"b\":3");
        let (prefix, suffix) = (whole.find("2}").unwrap() as u64, (whole.len() - whole.find("2}").unwrap() - 1) as u64);
        let like = sealer.commit_like(&base, &difference(prefix, suffix, b"3")).unwrap();
        assert_eq!((Some(like.body), like.salted_as), (sealer.commit(other.as_bytes(), 5), 0), "a leaf has changed");
        assert!(sealer.commit_like(&base, &difference(99, 0, b"")).is_none());
    }

    #[test]
    fn every_byte_of_a_body_and_its_salts_count() {
        let mut sealer = BodySealer::new(&[3; 32], &commit()).unwrap();
        let body = br#"{"jsonrpc":"2.0","id":7,"result":{"text":"secret","n":5}}"#;
        let sealed = sealer.commit(body, 1).unwrap();
        assert_eq!(sealer.commit(body, 1), Some(sealed));
        assert_ne!(sealer.commit(body, 2), Some(sealed), "the salts of another entry");
        for at in 0..body.len() {
            let mut changed = body.to_vec();
            changed[at] ^= 1;
            assert_ne!(sealer.commit(&changed, 1), Some(sealed), "byte {at}");
        }
    }
}
