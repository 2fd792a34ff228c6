//! The bounds of what a store takes in and gives out.

/// How many entries a page has where the query does not say.
pub const DEFAULT_LIMIT: usize = 100;

/// Most entries of one page, whatever the query says.
pub const MAX_LIMIT: usize = 10_000;

/// A page ends early where its bodies are larger than this together; it always has at least one entry.
pub const MAX_PAGE_BYTES: usize = 64 << 20;

/// How much of a body is searched for words: its first bytes.
pub const MAX_TEXT_BYTES: usize = 64 << 10;

/// Longest word that is told apart; what comes after that many bytes of a word does not count.
pub const MAX_WORD_BYTES: usize = 60;

/// Most words in one search.
pub const MAX_QUERY_WORDS: usize = 32;

/// Largest body that is unpacked; a larger one can only be damage.
pub const MAX_BODY_BYTES: u64 = 1 << 30;

/// Places in a tape stay below this, so that a tape's number and a place make one key.
pub const SEQ_BITS: u32 = 40;
