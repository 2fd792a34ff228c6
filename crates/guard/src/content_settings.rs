//! Modes for the content that servers send, by the place where they say it.

use crate::privacy::{PrivacyClass, PrivacyClasses};

/// Place where a text of a server stands.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum ContentClass {
    /// Results that tools gave.
    Results,
    /// Contents of resources that were read.
    Resources,
    /// Prompts that a server offers.
    Prompts,
    /// Errors, and results of tools that failed.
    Errors,
    /// Log messages of a server.
    Logs,
    /// Progress and the state of tasks.
    Progress,
    /// Questions to a person or a model.
    Questions,
    /// Tools, prompts, resources and instructions as they are listed.
    Definitions,
}

/// Mode for characters and markup that hide or act.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum CleanMode {
    /// Nothing is looked for.
    #[default]
    Off,
    /// Findings are only recorded.
    Report,
    /// Findings are removed and recorded.
    Clean,
}

/// Mode for texts that tell the model what to do.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum InstructionMode {
    /// Nothing is looked for.
    #[default]
    Off,
    /// Findings are only recorded.
    Report,
    /// A note for the model is put before the text, where the form of the message has room for one.
    Mark,
    /// The message is withheld.
    Block,
}

impl ContentClass {
    /// All classes, in the order of the documentation.
    pub const ALL: [Self; 8] = [
        Self::Results,
        Self::Resources,
        Self::Prompts,
        Self::Errors,
        Self::Logs,
        Self::Progress,
        Self::Questions,
        Self::Definitions,
    ];

    /// Returns the word for the class in the configuration and in records.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Results => "results",
            Self::Resources => "resources",
            Self::Prompts => "prompts",
            Self::Errors => "errors",
            Self::Logs => "logs",
            Self::Progress => "progress",
            Self::Questions => "questions",
            Self::Definitions => "definitions",
        }
    }

    fn index(self) -> usize {
        Self::ALL.iter().position(|class| *class == self).unwrap_or_default()
    }
}

impl CleanMode {
    /// Words of the modes in the configuration.
    pub const WORDS: [&str; 3] = ["off", "report", "clean"];

    /// Returns the mode that a word of the configuration names.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        let at = Self::WORDS.iter().position(|one| *one == word)?;
        [Self::Off, Self::Report, Self::Clean].get(at).copied()
    }
}

impl InstructionMode {
    /// Words of the modes in the configuration.
    pub const WORDS: [&str; 4] = ["off", "report", "mark", "block"];

    /// Returns the mode that a word of the configuration names.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        let at = Self::WORDS.iter().position(|one| *one == word)?;
        [Self::Off, Self::Report, Self::Mark, Self::Block].get(at).copied()
    }
}

/// A mode for each class of private data.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct PrivacyModes([CleanMode; 5]);

impl PrivacyModes {
    /// Returns what `mode` gives for each class.
    #[must_use]
    pub fn new(mode: impl FnMut(PrivacyClass) -> CleanMode) -> Self {
        Self(PrivacyClass::ALL.map(mode))
    }

    /// Returns the modes with each replaced by what `change` gives for it.
    #[must_use]
    pub fn map(self, change: impl FnMut(CleanMode) -> CleanMode) -> Self {
        Self(self.0.map(change))
    }

    /// Returns the mode of a class.
    #[must_use]
    pub fn of(&self, class: PrivacyClass) -> CleanMode {
        self.0[class as usize]
    }

    /// Returns the classes that are looked for.
    #[must_use]
    pub fn classes(&self) -> PrivacyClasses {
        PrivacyClass::ALL.into_iter().filter(|class| self.of(*class) != CleanMode::Off).collect()
    }
}

/// A mode for each class of content.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct ByContent<M>([M; 8]);

impl<M: Copy> ByContent<M> {
    /// Returns what `mode` gives for each class.
    #[must_use]
    pub fn new(mode: impl FnMut(ContentClass) -> M) -> Self {
        Self(ContentClass::ALL.map(mode))
    }

    /// Returns the mode of a class.
    #[must_use]
    pub fn of(&self, class: ContentClass) -> M {
        self.0[class.index()]
    }
}
