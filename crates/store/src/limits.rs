//! Limits on the input and output of a store.

/// Number of entries on a page if the query sets no limit.
pub const DEFAULT_LIMIT: usize = 100;

/// Maximum number of entries on a page, whatever the query asks for.
pub const MAX_LIMIT: usize = 10_000;

/// Size of the bodies at which a page ends early. A page always has at least one entry.
pub const MAX_PAGE_BYTES: usize = 64 << 20;

/// Number of bytes at the start of a body that are searchable.
pub const MAX_TEXT_BYTES: usize = 64 << 10;

/// Maximum size of an indexed word. The rest of a longer word is ignored.
pub const MAX_WORD_BYTES: usize = 60;

/// Maximum number of words in one search.
pub const MAX_QUERY_WORDS: usize = 32;

/// Maximum size of a decoded body. A larger length can only be damage.
pub const MAX_BODY_BYTES: u64 = 1 << 30;

/// Number of bits of a position in a tape, so that the tape's number and a position fit into one key.
pub const SEQ_BITS: u32 = 40;
