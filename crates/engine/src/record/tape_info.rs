/// Command that created a tape.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum TapeKind {
    /// Created by `signalbox serve`.
    Serve,
    /// Created by `signalbox stdio`.
    Stdio,
    /// Created by `signalbox wrap`.
    Wrap,
    /// Created by `signalbox proxy`.
    Proxy,
    /// Created by `signalbox tape import`, from a recording of another program.
    Import,
}

impl TapeKind {
    /// All kinds, in declaration order.
    pub const ALL: [Self; 5] = [Self::Serve, Self::Stdio, Self::Wrap, Self::Proxy, Self::Import];

    /// Returns the word used in listings and stored forms.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Serve => "serve",
            Self::Stdio => "stdio",
            Self::Wrap => "wrap",
            Self::Proxy => "proxy",
            Self::Import => "import",
        }
    }

    /// Returns the `signalbox` command that created the tape.
    #[must_use]
    pub fn command(self) -> &'static str {
        match self {
            Self::Import => "tape import",
            other => other.word(),
        }
    }

    /// Returns the kind with this word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

/// Head of a tape: everything but its entries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TapeInfo {
    /// Name, unique in a data folder; sorts by the time the tape began.
    pub id: String,
    /// Command that created the tape.
    pub kind: TapeKind,
    /// Recorded target: the wrapped command, the URL, or the path of the configuration.
    pub target: String,
    /// Start of the tape, in nanoseconds since 1970.
    pub started: u64,
    /// End of the tape, if it ended properly.
    pub ended: Option<u64>,
    /// Version of the program that created the tape.
    pub program: String,
    /// Redaction rules, one per line; empty if nothing was redacted.
    pub redaction: Vec<String>,
    /// Sampling, in words of the configuration (`all`, `share 0.1`, `errors`, …).
    pub sampling: String,
    /// Tape that this one was derived from, if any.
    pub parent: Option<String>,
    /// Seal of the tape, as written by `signalbox_seal::TapeSeal`; `None` if it is not sealed.
    pub seal: Option<Box<[u8]>>,
}

impl TapeInfo {
    /// Creates a head with all other fields empty.
    #[must_use]
    pub fn new(id: String, kind: TapeKind, target: String, started: u64) -> Self {
        let (ended, program, redaction, sampling) = (None, String::new(), Vec::new(), String::new());
        Self { id, kind, target, started, ended, program, redaction, sampling, parent: None, seal: None }
    }
}
