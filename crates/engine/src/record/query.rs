use super::entry::Entry;

/// Filter for entries. Absent fields match everything.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Query {
    /// Words that the message must contain, all of them; a word in quotes is a phrase.
    pub text: Option<String>,
    /// Name of the tape.
    pub tape: Option<String>,
    /// Session of the tape.
    pub session: Option<u64>,
    /// Exchange of the tape.
    pub exchange: Option<u64>,
    /// Methods, one of which must match; a trailing `*` stands for any rest.
    pub methods: Vec<String>,
    /// Tool, prompt or URI.
    pub subject: Option<String>,
    /// Backend of the entry.
    pub backend: Option<String>,
    /// Principal of the caller.
    pub principal: Option<String>,
    /// Outcome of the exchange (finished entries and the messages of their exchanges).
    pub outcome: Option<String>,
    /// Error code of the message.
    pub error_code: Option<i64>,
    /// Minimum duration of the exchange, in nanoseconds.
    pub slower_than: Option<u64>,
    /// Earliest time, in nanoseconds since 1970.
    pub since: Option<u64>,
    /// Time before which the entry lies.
    pub until: Option<u64>,
    /// True for only the ends of exchanges.
    pub only_ends: bool,
    /// True for only messages as a client sent or was sent them. Text is searched in each of these images, and not in
    /// messages between the gateway and a backend.
    pub client_side: bool,
    /// Sequence number after which the entries lie.
    pub after: Option<u64>,
    /// Maximum number of entries; 100 by default.
    pub limit: Option<usize>,
    /// True for newest entries first.
    pub newest_first: bool,
}

/// Entries that a query found, and the position to continue at.
#[derive(Clone, PartialEq, Debug)]
pub struct EntryPage {
    /// Entries in order, with complete bodies.
    pub hits: Vec<Hit>,
    /// True if there are more than the limit.
    pub more: bool,
}

/// An entry and its tape.
#[derive(Clone, PartialEq, Debug)]
pub struct Hit {
    /// Name of the tape.
    pub tape: String,
    /// Entry that was found.
    pub entry: Entry,
}

/// Statistics of one tape, or of all.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Stats {
    /// Statistics of all exchanges.
    pub total: MethodStats,
    /// Statistics of each method.
    pub methods: Vec<(String, MethodStats)>,
    /// Statistics of each tool.
    pub tools: Vec<(String, MethodStats)>,
    /// Number of messages of each kind, by its word.
    pub messages: Vec<(String, u64)>,
    /// Number of notifications of each method.
    pub notifications: Vec<(String, NotificationStats)>,
    /// Number of missing facts.
    pub gaps: u64,
    /// Bytes of messages as they passed, and as they are stored.
    pub bytes: (u64, u64),
}

/// Number of notifications of one method.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct NotificationStats {
    /// Number received from clients and backends.
    pub came: u64,
    /// Number sent to clients and backends. One received notification may be sent to several.
    pub went: u64,
}

/// Statistics of a set of exchanges.
#[derive(Copy, Clone, PartialEq, Default, Debug)]
pub struct MethodStats {
    /// Number of exchanges of the method.
    pub count: u64,
    /// Number of exchanges that failed.
    pub errors: u64,
    /// Mean duration, in nanoseconds.
    pub mean: u64,
    /// Median duration, in nanoseconds.
    pub p50: u64,
    /// 95th percentile of the duration, in nanoseconds.
    pub p95: u64,
    /// 99th percentile of the duration, in nanoseconds.
    pub p99: u64,
    /// Total size of requests in bytes.
    pub bytes_in: u64,
    /// Total size of answers in bytes.
    pub bytes_out: u64,
}

impl MethodStats {
    /// Returns the approximate number of tokens that a model reads and writes for them: a quarter of the bytes.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        (self.bytes_in + self.bytes_out).div_ceil(4)
    }
}
