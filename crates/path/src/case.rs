//! Kinds of calls that are measured.

use signalbox_wire::Era;
use std::fmt;

/// Framing of a backend's answers.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Framing {
    /// Answers are single JSON bodies.
    Json,
    /// Answers are events of a stream.
    Sse,
}

/// One kind of call.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct CallCase {
    /// Era of the client.
    pub client: Era,
    /// Era of the backend.
    pub backend: Era,
    /// Size of the request in bytes; the answer is about as long.
    pub size: usize,
    /// Framing of the answer.
    pub framing: Framing,
}

impl CallCase {
    /// Returns every case: both eras, small and large, JSON and events, and the two bridged directions.
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for era in [Era::Legacy, Era::Modern] {
            for size in [256, 65536] {
                for framing in [Framing::Json, Framing::Sse] {
                    all.push(Self { client: era, backend: era, size, framing });
                }
            }
        }
        let bridged = |client, backend| Self { client, backend, size: 256, framing: Framing::Json };
        all.extend([bridged(Era::Legacy, Era::Modern), bridged(Era::Modern, Era::Legacy)]);
        all
    }
}

impl fmt::Display for CallCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |era| if era == Era::Legacy { "old" } else { "new" };
        f.write_str(word(self.client))?;
        if self.client != self.backend {
            write!(f, "-to-{}", word(self.backend))?;
        }
        let framing = if self.framing == Framing::Json { "json" } else { "sse" };
        write!(f, "-{}-{framing}", self.size)
    }
}
