//! Limits on the size of rule sets and on the cost of evaluating a message. Legitimate sets stay far below them.

use std::time::Duration;

/// Maximum number of rules in a set, across all files.
pub const RULES: usize = 1000;
/// Maximum size of a file in bytes.
pub const FILE: usize = 4 * 1024 * 1024;
/// Maximum nesting of `and`, `or` and `not`.
pub const DEPTH: usize = 16;
/// Maximum number of conditions in a rule.
pub const CONDITIONS: usize = 256;
/// Maximum number of actions in a rule.
pub const ACTIONS: usize = 32;
/// Maximum length of the id or name of a rule, a counter or a backend, in bytes.
pub const NAME: usize = 128;
/// Maximum length of a text in a condition or action, in bytes.
pub const TEXT: usize = 4096;
/// Maximum number of entries in a list of a rule.
pub const LIST: usize = 256;
/// Maximum length of a regular expression in bytes.
pub const PATTERN: usize = 1024;
/// Maximum size of a compiled regular expression in bytes.
pub const COMPILED: usize = 512 * 1024;
/// Maximum number of regular expressions in a set.
pub const PATTERNS: usize = 500;
/// Maximum length of a JSON pointer in bytes.
pub const POINTER: usize = 512;
/// Maximum number of segments in a JSON pointer.
pub const SEGMENTS: usize = 32;
/// Maximum size of a JSON value in a rule, in bytes.
pub const VALUE: usize = 64 * 1024;
/// Maximum size of a file of mock results, in bytes.
pub const MOCK_FILE: usize = 4 * 1024 * 1024;
/// Maximum size of all mock files together, in bytes.
pub const MOCK_FILES: usize = 32 * 1024 * 1024;
/// Maximum number of results in a mock file.
pub const MOCK_RESULTS: usize = 10_000;
/// Maximum time that a rule may wait for anything.
pub const WAIT: Duration = Duration::from_secs(600);
/// Maximum window of a rate limit and lifetime of a cache entry.
pub const SPAN: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum number of uses that a rate limit may allow.
pub const USES: u64 = 1_000_000;
/// Maximum number of entries in a cache.
pub const CACHED: u64 = 10_000;
/// Default number of entries in a cache.
pub const CACHED_DEFAULT: u64 = 1000;
/// Default time that a message is held. SDKs give up after 60 seconds.
pub const HOLD_DEFAULT: Duration = Duration::from_secs(50);
/// Default timeout of a webhook.
pub const WEBHOOK_DEFAULT: Duration = Duration::from_secs(5);
/// Maximum number of bytes that all conditions together read of one message. Messages that need more are refused.
pub const WORK: usize = 256 * 1024 * 1024;
/// Maximum size of a rendered template in bytes.
pub const RENDERED: usize = 16 * 1024 * 1024;
/// Maximum length of a rate limit or cache key in bytes.
pub const KEY: usize = 1024;
/// Maximum number of keys in all rate limits together. A caller may hold at most as many keys as are free.
pub const LIMITER_KEYS: usize = 100_000;
/// Maximum number of calls for which the rate limits that counted them are remembered, for further rounds.
pub const COUNTED_CALLS: usize = 20_000;
/// Maximum size of all caches together, in bytes.
pub const CACHE_BYTES: usize = 64 * 1024 * 1024;
/// Maximum size of a cached answer in bytes.
pub const CACHE_ENTRY: usize = 1024 * 1024;
/// Maximum number of requests stored for their answer.
pub const REMEMBERED: usize = 20_000;
/// Maximum size of the stored requests in bytes.
pub const REMEMBERED_BYTES: usize = 64 * 1024 * 1024;
/// Number of rule versions kept for messages that are held during a reload.
pub const VERSIONS: usize = 10;
/// Maximum size of a message sent to a webhook, in bytes.
pub const WEBHOOK_MESSAGE: usize = WEBHOOK_ANSWER;
/// Maximum size of a webhook's response in bytes.
pub use signalbox_engine::chain::MAX_WEBHOOK_ANSWER as WEBHOOK_ANSWER;
/// Maximum size of an external input recorded in full, in bytes. Of larger ones, only length and hash are recorded.
pub const INPUT: usize = 16 * 1024;

/// Maximum number of rules of a file whose errors are reported.
pub const FAULTS: usize = 50;
