//! Settings of the guard.

use crate::content_settings::{ByContent, CleanMode, ContentClass, InstructionMode, PrivacyModes};
use crate::filter_settings::{ArgumentFilter, FilterAction, FilterActions};
use crate::pins::{PinMode, PinModes};
use crate::privacy::PrivacyClass;
use signalbox_engine::chain::EntryPattern;
use std::sync::Arc;

/// Mode for values that do not fit their schema.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SchemaMode {
    /// Nothing is checked at all.
    #[default]
    Off,
    /// A message that does not fit is recorded and passes.
    Report,
    /// A message that does not fit is refused.
    Enforce,
}

impl SchemaMode {
    /// Words of the modes in the configuration.
    pub const WORDS: [&str; 3] = ["off", "report", "enforce"];

    /// Returns the mode that a word of the configuration names.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        let at = Self::WORDS.iter().position(|one| *one == word)?;
        [Self::Off, Self::Report, Self::Enforce].get(at).copied()
    }
}

/// Mode of a part of the guard.
pub trait GuardMode: Copy {
    /// Returns the mode that only records what this one would do.
    #[must_use]
    fn in_shadow(self) -> Self;
}

impl GuardMode for SchemaMode {
    fn in_shadow(self) -> Self {
        if self == Self::Off { Self::Off } else { Self::Report }
    }
}

impl GuardMode for CleanMode {
    fn in_shadow(self) -> Self {
        if self == Self::Off { Self::Off } else { Self::Report }
    }
}

impl GuardMode for InstructionMode {
    fn in_shadow(self) -> Self {
        if self == Self::Off { Self::Off } else { Self::Report }
    }
}

impl GuardMode for PrivacyModes {
    fn in_shadow(self) -> Self {
        self.map(CleanMode::in_shadow)
    }
}

impl GuardMode for PinMode {
    fn in_shadow(self) -> Self {
        if self == Self::Off { Self::Off } else { Self::Report }
    }
}

impl GuardMode for FilterAction {
    fn in_shadow(self) -> Self {
        if self == Self::Off { Self::Off } else { Self::Report }
    }
}

/// Level that sets every key of the guard at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GuardLevel {
    /// Nothing is checked at all.
    Off,
    /// Everything is checked and recorded, and nothing is refused or changed.
    Observe,
    /// Refuses things that are certainly wrong.
    #[default]
    Standard,
    /// Refuses things that may be wrong.
    Strict,
}

impl GuardLevel {
    /// Words of the levels in the configuration.
    pub const WORDS: [&str; 4] = ["off", "observe", "standard", "strict"];

    /// Returns the level that a word of the configuration names.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        let at = Self::WORDS.iter().position(|one| *one == word)?;
        [Self::Off, Self::Observe, Self::Standard, Self::Strict].get(at).copied()
    }

    /// Returns the mode for arguments.
    #[must_use]
    pub fn arguments(self) -> SchemaMode {
        match self {
            Self::Off => SchemaMode::Off,
            Self::Observe => SchemaMode::Report,
            Self::Standard | Self::Strict => SchemaMode::Enforce,
        }
    }

    /// Returns the action of a filter. Only an attacker asks a tool for the address at which a cloud hands out
    /// credentials; everything else also occurs in ordinary work.
    #[must_use]
    pub fn filter(self, filter: ArgumentFilter) -> FilterAction {
        match (self, filter) {
            (Self::Off, _) => FilterAction::Off,
            (Self::Standard, ArgumentFilter::Metadata) | (Self::Strict, _) => FilterAction::Block,
            (Self::Observe | Self::Standard, _) => FilterAction::Report,
        }
    }

    /// Returns the mode for what hides or acts. Files that a tool reads and a client writes back must stay as they are,
    /// so `standard` removes nothing from results, resources and prompts.
    #[must_use]
    pub fn clean(self, class: ContentClass) -> CleanMode {
        use ContentClass as C;
        match (self, class) {
            (Self::Off, _) => CleanMode::Off,
            (Self::Observe, _) | (Self::Standard, C::Results | C::Resources | C::Prompts) => CleanMode::Report,
            (Self::Standard | Self::Strict, _) => CleanMode::Clean,
        }
    }

    /// Returns the mode for orders to the model in content of a class.
    #[must_use]
    pub fn instructions(self, class: ContentClass) -> InstructionMode {
        use ContentClass as C;
        match (self, class) {
            (Self::Off, _) => InstructionMode::Off,
            (Self::Standard, C::Results | C::Errors) => InstructionMode::Mark,
            (Self::Observe | Self::Standard, _) => InstructionMode::Report,
            (Self::Strict, _) => InstructionMode::Block,
        }
    }

    /// Returns the mode for private data of a class. Addresses and numbers are the content of many tools, so only
    /// credentials are looked for unless the configuration asks for more.
    #[must_use]
    pub fn privacy(self, class: PrivacyClass) -> CleanMode {
        match (self, class) {
            (Self::Off, _) => CleanMode::Off,
            (Self::Strict, PrivacyClass::Credential) => CleanMode::Clean,
            (_, PrivacyClass::Credential) => CleanMode::Report,
            _ => CleanMode::Off,
        }
    }

    /// Returns the action on forms that ask a person for a password or a key. MCP forbids them to servers.
    #[must_use]
    pub fn secret_forms(self) -> FilterAction {
        match self {
            Self::Off => FilterAction::Off,
            Self::Observe => FilterAction::Report,
            Self::Standard | Self::Strict => FilterAction::Block,
        }
    }

    /// Returns the action on calls that hold a canary. It is there to be noticed, and has no use but that.
    #[must_use]
    pub fn canaries(self) -> FilterAction {
        match self {
            Self::Off => FilterAction::Off,
            Self::Observe => FilterAction::Report,
            Self::Standard | Self::Strict => FilterAction::Block,
        }
    }

    /// Returns the modes for definitions that differ from the approved ones. A reviewer who keeps a lock file wants to
    /// see every change first; without one, servers that are updated would stop working.
    #[must_use]
    pub fn pins(self) -> PinModes {
        match self {
            Self::Off => PinModes::both(PinMode::Off),
            Self::Observe => PinModes::both(PinMode::Report),
            Self::Standard => PinModes { locked: PinMode::Quarantine, unlocked: PinMode::Suspicious },
            Self::Strict => PinModes::both(PinMode::Quarantine),
        }
    }

    /// Returns the mode for results. Many servers declare schemas that their own results do not fit, so only `strict`
    /// refuses those.
    #[must_use]
    pub fn results(self) -> SchemaMode {
        match self {
            Self::Off => SchemaMode::Off,
            Self::Observe | Self::Standard => SchemaMode::Report,
            Self::Strict => SchemaMode::Enforce,
        }
    }
}

/// Settings for the tools that match one pattern. `None` leaves the setting for all tools.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolSettings {
    /// `BACKEND` or `BACKEND/NAME`, as configured.
    pub name: Arc<str>,
    /// The same as a pattern.
    pub tools: EntryPattern,
    /// Mode for arguments of these tools.
    pub arguments: Option<SchemaMode>,
    /// Mode for results of these tools.
    pub results: Option<SchemaMode>,
    /// Action of all filters on its arguments.
    pub filters: Option<FilterAction>,
    /// Mode for what hides or acts in what the tool says.
    pub clean: Option<CleanMode>,
    /// Mode for private data of every class in what the tool says.
    pub privacy: Option<CleanMode>,
    /// Mode for orders to the model in what the tool says.
    pub instructions: Option<InstructionMode>,
}

impl ToolSettings {
    /// Returns the modes for private data that `privacy` sets for every class.
    #[must_use]
    pub fn privacy_modes(&self) -> Option<PrivacyModes> {
        self.privacy.map(|mode| PrivacyModes::new(|_| mode))
    }
}

/// Data of some tools that may not go into others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowRule {
    /// Name of the flow's table in the configuration.
    pub name: Arc<str>,
    /// Tools whose results are traced.
    pub from: Vec<EntryPattern>,
    /// Tools that may not be given them.
    pub to: Vec<EntryPattern>,
    /// Action on a call that would be given them.
    pub mode: SchemaMode,
    /// Length of a run of characters that counts.
    pub min_chars: usize,
}

/// Settings of a guard.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GuardSettings {
    /// True if decisions are recorded and not carried out.
    pub shadow: bool,
    /// Mode for arguments and the schema of the tool's input.
    pub arguments: SchemaMode,
    /// Mode for structured results and the schema of the tool's output.
    pub results: SchemaMode,
    /// Actions of the filters on arguments.
    pub filters: FilterActions,
    /// Modes for what hides or acts.
    pub clean: ByContent<CleanMode>,
    /// Modes for orders to the model.
    pub instructions: ByContent<InstructionMode>,
    /// Modes for private data, one for each class.
    pub privacy: PrivacyModes,
    /// Action on forms that ask a person for a password or a key.
    pub secret_forms: FilterAction,
    /// Action on calls that hold a canary.
    pub canaries: FilterAction,
    /// Flows that are not allowed.
    pub flows: Vec<FlowRule>,
    /// Modes for definitions that differ from the approved ones.
    pub pins: PinModes,
    /// Settings for some tools. Of several that match, the last in the file counts.
    pub tools: Vec<ToolSettings>,
}

impl GuardSettings {
    /// Returns the settings of a level, without exceptions for tools.
    #[must_use]
    pub fn of_level(level: GuardLevel) -> Self {
        Self {
            shadow: false,
            arguments: level.arguments(),
            results: level.results(),
            filters: FilterActions::new(|filter| level.filter(filter)),
            clean: ByContent::new(|class| level.clean(class)),
            instructions: ByContent::new(|class| level.instructions(class)),
            privacy: PrivacyModes::new(|class| level.privacy(class)),
            secret_forms: level.secret_forms(),
            canaries: level.canaries(),
            flows: Vec::new(),
            pins: level.pins(),
            tools: Vec::new(),
        }
    }

    /// Returns true if nothing is checked.
    #[must_use]
    pub fn is_off(&self) -> bool {
        *self == Self { shadow: self.shadow, ..Self::default() }
    }

    /// Returns true if no filter is used for any tool.
    #[must_use]
    pub fn filters_are_off(&self) -> bool {
        self.filters == FilterActions::default() && self.tools.iter().all(|tool| tool.filters.is_none())
    }
}
