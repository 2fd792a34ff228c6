/// Which command made a tape.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum TapeKind {
    /// `signalbox serve`.
    Serve,
    /// `signalbox stdio`.
    Stdio,
    /// `signalbox wrap`.
    Wrap,
    /// `signalbox proxy`.
    Proxy,
    /// `signalbox tape import`, from a recording of another program.
    Import,
}

impl TapeKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Serve, Self::Stdio, Self::Wrap, Self::Proxy, Self::Import];

    /// The word for it in listings and stored forms.
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

    /// The command of `signalbox` that made it.
    #[must_use]
    pub fn command(self) -> &'static str {
        match self {
            Self::Import => "tape import",
            other => other.word(),
        }
    }

    /// The kind that has this word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

/// The head of a tape: everything but its entries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TapeInfo {
    /// Its name, unique in a data folder; sorts by the time it began.
    pub id: String,
    /// Which command made it.
    pub kind: TapeKind,
    /// What was recorded, in words: the wrapped command, the URL, or the path of the configuration.
    pub target: String,
    /// When it began, in nanoseconds since 1970.
    pub started: u64,
    /// When it ended, if it ended properly.
    pub ended: Option<u64>,
    /// The version of the program that made it.
    pub program: String,
    /// The redaction rules, one per line; empty if nothing was redacted.
    pub redaction: Vec<String>,
    /// What was recorded of what passed, in words of the configuration (`all`, `share 0.1`, `errors`, …).
    pub sampling: String,
    /// The tape that this one was derived from, if any.
    pub parent: Option<String>,
    /// What seals the tape, as `signalbox_seal::TapeSeal` writes it; none if it is not sealed.
    pub seal: Option<Box<[u8]>>,
}

impl TapeInfo {
    /// A head with nothing else known.
    #[must_use]
    pub fn new(id: String, kind: TapeKind, target: String, started: u64) -> Self {
        let (ended, program, redaction, sampling) = (None, String::new(), Vec::new(), String::new());
        Self { id, kind, target, started, ended, program, redaction, sampling, parent: None, seal: None }
    }
}
