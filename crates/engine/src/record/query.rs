use super::entry::Entry;

/// A filter for entries. Absent fields match everything.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Query {
    /// Words that the message must hold, all of them; a word in quotes is a phrase.
    pub text: Option<String>,
    /// Of this tape.
    pub tape: Option<String>,
    /// Of this session of the tape.
    pub session: Option<u64>,
    /// Of this exchange of the tape.
    pub exchange: Option<u64>,
    /// Of one of these methods; a trailing `*` stands for any rest.
    pub methods: Vec<String>,
    /// About this tool, prompt or URI.
    pub subject: Option<String>,
    /// Through this backend.
    pub backend: Option<String>,
    /// On behalf of this principal.
    pub principal: Option<String>,
    /// Ended with this outcome (finished entries and the messages of their exchanges).
    pub outcome: Option<String>,
    /// With this error code.
    pub error_code: Option<i64>,
    /// Exchanges that took at least this long, in nanoseconds.
    pub slower_than: Option<u64>,
    /// At or after this time, in nanoseconds since 1970.
    pub since: Option<u64>,
    /// Before this time.
    pub until: Option<u64>,
    /// Only the ends of exchanges.
    pub only_ends: bool,
    /// Only messages as a client sent or was sent them. Text is looked for in each of these images, and not in what
    /// passed between the gateway and a backend.
    pub client_side: bool,
    /// Only entries after this sequence number.
    pub after: Option<u64>,
    /// At most this many; 100 by default.
    pub limit: Option<usize>,
    /// The newest first.
    pub newest_first: bool,
}

/// Entries that a query found, and where to continue.
#[derive(Clone, PartialEq, Debug)]
pub struct EntryPage {
    /// The entries in order, with complete bodies.
    pub hits: Vec<Hit>,
    /// True if there are more than the limit.
    pub more: bool,
}

/// An entry and its tape.
#[derive(Clone, PartialEq, Debug)]
pub struct Hit {
    /// The tape.
    pub tape: String,
    /// The entry.
    pub entry: Entry,
}

/// Statistics of one tape, or of all.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Stats {
    /// All exchanges together.
    pub total: MethodStats,
    /// For each method.
    pub methods: Vec<(String, MethodStats)>,
    /// For each tool.
    pub tools: Vec<(String, MethodStats)>,
    /// Messages of each kind, by its word.
    pub messages: Vec<(String, u64)>,
    /// Notifications of each method.
    pub notifications: Vec<(String, NotificationStats)>,
    /// Facts that are missing.
    pub gaps: u64,
    /// Bytes of messages as they passed, and as they are kept.
    pub bytes: (u64, u64),
}

/// How many notifications of one method passed.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct NotificationStats {
    /// How many came from clients and backends.
    pub came: u64,
    /// How many went to clients and backends; one that came may go to several.
    pub went: u64,
}

/// Statistics of a set of exchanges.
#[derive(Copy, Clone, PartialEq, Default, Debug)]
pub struct MethodStats {
    /// How many.
    pub count: u64,
    /// How many did not end well.
    pub errors: u64,
    /// How long they took on average, in nanoseconds.
    pub mean: u64,
    /// Half took at most this long, in nanoseconds.
    pub p50: u64,
    /// 95 of 100 took at most this long.
    pub p95: u64,
    /// 99 of 100 took at most this long.
    pub p99: u64,
    /// Bytes of requests.
    pub bytes_in: u64,
    /// Bytes of answers.
    pub bytes_out: u64,
}

impl MethodStats {
    /// About how many tokens a model reads and writes for them: a quarter of the bytes.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        (self.bytes_in + self.bytes_out).div_ceil(4)
    }
}
