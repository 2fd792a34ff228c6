//! The five revisions of MCP, as the test parts that speak exactly one of them name it.

use std::fmt;
use std::str::FromStr;

/// One revision of MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2024-11-05: HTTP+SSE.
    R1,
    /// 2025-03-26: Streamable HTTP, batches, audio.
    R2,
    /// 2025-06-18: elicitation, structured results, the version header.
    R3,
    /// 2025-11-25: tasks, URL elicitation.
    R4,
    /// 2026-07-28: no sessions; every request describes itself.
    R5,
}

impl Revision {
    /// All of them, oldest first.
    pub const ALL: [Self; 5] = [Self::R1, Self::R2, Self::R3, Self::R4, Self::R5];

    /// The date that names it on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::R1 => "2024-11-05",
            Self::R2 => "2025-03-26",
            Self::R3 => "2025-06-18",
            Self::R4 => "2025-11-25",
            Self::R5 => "2026-07-28",
        }
    }

    /// Whether it belongs to the new era.
    pub fn modern(self) -> bool {
        self == Self::R5
    }

    /// Whether servers may ask the user for something.
    pub fn elicits(self) -> bool {
        self >= Self::R3
    }

    /// Whether tools may answer with structured content.
    pub fn structures(self) -> bool {
        self >= Self::R3
    }

    /// Whether it knows the Streamable HTTP transport.
    pub fn streams(self) -> bool {
        self >= Self::R2
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Revision {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|revision| revision.name() == name);
        found.ok_or_else(|| anyhow::anyhow!("{name} is no revision of MCP"))
    }
}
