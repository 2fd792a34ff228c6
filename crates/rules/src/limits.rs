//! Bounds on what a rule set may hold, and on what judging a message may cost. No honest set meets them.

use std::time::Duration;

/// Most rules in a set, those of all files together.
pub const RULES: usize = 1000;
/// Largest file, in bytes.
pub const FILE: usize = 4 * 1024 * 1024;
/// Deepest nesting of `and`, `or` and `not`.
pub const DEPTH: usize = 16;
/// Most conditions in one rule.
pub const CONDITIONS: usize = 256;
/// Most actions in one rule.
pub const ACTIONS: usize = 32;
/// Longest id or name of a rule, a counter or a backend, in bytes.
pub const NAME: usize = 128;
/// Longest text of a condition or an action, in bytes.
pub const TEXT: usize = 4096;
/// Most entries in a list of a rule.
pub const LIST: usize = 256;
/// Longest regular expression, in bytes.
pub const PATTERN: usize = 1024;
/// Largest compiled regular expression, in bytes.
pub const COMPILED: usize = 512 * 1024;
/// Most regular expressions in a set.
pub const PATTERNS: usize = 500;
/// Longest JSON pointer, in bytes.
pub const POINTER: usize = 512;
/// Most segments of a JSON pointer.
pub const SEGMENTS: usize = 32;
/// Largest JSON value in a rule, in bytes.
pub const VALUE: usize = 64 * 1024;
/// Largest file of made up results, in bytes.
pub const MOCK_FILE: usize = 4 * 1024 * 1024;
/// Most bytes in mock files of all rules together.
pub const MOCK_FILES: usize = 32 * 1024 * 1024;
/// Most results in a file.
pub const MOCK_RESULTS: usize = 10_000;
/// Longest time that a rule may wait for anything.
pub const WAIT: Duration = Duration::from_secs(600);
/// Longest time that a rule may count over or keep something for.
pub const SPAN: Duration = Duration::from_secs(24 * 60 * 60);
/// Most uses that a rate limit may allow in its time.
pub const USES: u64 = 1_000_000;
/// Most answers that one cache may keep.
pub const CACHED: u64 = 10_000;
/// Answers that a cache keeps where the rule does not say.
pub const CACHED_DEFAULT: u64 = 1000;
/// Longest a held message waits where the rule does not say: SDKs give up after 60 seconds.
pub const HOLD_DEFAULT: Duration = Duration::from_secs(50);
/// Longest a webhook may take where the rule does not say.
pub const WEBHOOK_DEFAULT: Duration = Duration::from_secs(5);
/// Most bytes that all conditions together read of one message; what needs more is refused.
pub const WORK: usize = 256 * 1024 * 1024;
/// Largest text that a template may become, in bytes.
pub const RENDERED: usize = 16 * 1024 * 1024;
/// Longest key of a rate limit or a cache, in bytes.
pub const KEY: usize = 1024;
/// Most keys that all rate limits together count. One caller has no more of them than are free.
pub const LIMITER_KEYS: usize = 100_000;
/// Most bytes that all caches together keep.
pub const CACHE_BYTES: usize = 64 * 1024 * 1024;
/// Largest answer that a cache keeps, in bytes.
pub const CACHE_ENTRY: usize = 1024 * 1024;
/// Most requests that are remembered until their answer comes.
pub const REMEMBERED: usize = 20_000;
/// Most bytes of remembered requests.
pub const REMEMBERED_BYTES: usize = 64 * 1024 * 1024;
/// Versions of the rules that are kept for messages which are held while the rules change.
pub const VERSIONS: usize = 10;
/// Largest message that a webhook is shown, in bytes.
pub const WEBHOOK_MESSAGE: usize = WEBHOOK_ANSWER;
/// Largest answer of a webhook that is read, in bytes.
pub use signalbox_engine::chain::MAX_WEBHOOK_ANSWER as WEBHOOK_ANSWER;
/// Largest outside input that a ruling holds whole, in bytes; of a larger one its length and hash.
pub const INPUT: usize = 16 * 1024;

/// Most rules of a file whose errors are reported.
pub const FAULTS: usize = 50;
