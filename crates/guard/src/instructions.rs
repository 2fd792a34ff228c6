//! Scores texts for instructions that are meant for the model instead of the reader.
//!
//! The kinds of signals are data (`rules/instructions.toml`), which users extend. Signals add up within a stretch of
//! text, and the sum is compared with thresholds that depend on where the text stands: a prompt gives orders by its
//! nature, a result does not. The text is scored as it is written and, if something suggests it, decoded: without
//! invisible characters, with look-alikes folded, escapes, base64 and simple ciphers undone.

mod decoder;
mod discussion;
mod keyword_search;
mod name_set;
mod rule;
mod score;
mod scorer;
mod spelling;
#[cfg(test)]
mod tests;

pub use name_set::NameSet;
pub use rule::BadInstructionRules;
pub use score::{InstructionVerdict, Score, Signal, TextForm};
pub use scorer::{InstructionScorer, ScoreContext};
pub(crate) use spelling::fold_look_alikes;

/// Place of a text, which decides how much of an order it may contain.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TextLocation {
    /// Result of a call of a tool.
    Result,
    /// Content of a resource.
    Resource,
    /// Name, description or schema of a tool.
    Definition,
    /// Prompt that a server offers. It instructs the model by its nature.
    Prompt,
    /// Question of a server to a person, or its request to a model.
    Question,
    /// Message of a failed call.
    Error,
    /// Line of a log or of progress.
    Log,
}

impl TextLocation {
    /// All places, in the order of their numbers.
    pub(crate) const ALL: [Self; 7] =
        [Self::Result, Self::Resource, Self::Definition, Self::Prompt, Self::Question, Self::Error, Self::Log];

    /// Returns the points from which a text counts as suspicious.
    #[must_use]
    pub const fn suspicious(self) -> u32 {
        match self {
            Self::Prompt => 30,
            Self::Result | Self::Resource | Self::Log => 25,
            Self::Definition | Self::Question | Self::Error => 24,
        }
    }

    /// Returns the points from which a text counts as an attack.
    #[must_use]
    pub const fn attack(self) -> u32 {
        self.suspicious() * 2
    }
}
