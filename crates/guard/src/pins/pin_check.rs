//! Decides what is done about definitions that differ from the approved ones.

use super::lock_file::BackendPins;
use super::look_alikes::{NameIndex, Resemblance};
use super::tool_change::{InstructionsChange, PinChange, ReservedNames, ToolChange, compare, compare_instructions};
use super::tool_definition::{DefinitionError, ToolDefinition};

/// Mode for definitions that differ from the approved ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PinMode {
    /// Lists are shown without a comparison, and no definition is remembered.
    #[default]
    Off,
    /// Differences are recorded, and every tool is shown.
    Report,
    /// A tool that changed and is suspicious is quarantined. Other differences are recorded.
    Suspicious,
    /// A tool that differs is quarantined until it is approved.
    Quarantine,
}

/// Modes with and without a lock file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PinModes {
    /// Mode if a lock file has the approved definitions.
    pub locked: PinMode,
    /// Mode if there is none, so that definitions are compared with those that were seen before.
    pub unlocked: PinMode,
}

impl PinModes {
    /// Returns the modes of a key that sets one for both.
    #[must_use]
    pub fn both(mode: PinMode) -> Self {
        Self { locked: mode, unlocked: mode }
    }
}

impl PinMode {
    /// Words of the modes in the configuration.
    pub const WORDS: [&str; 4] = ["off", "report", "suspicious", "quarantine"];

    /// Returns the mode that a word of the configuration names.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        let at = Self::WORDS.iter().position(|one| *one == word)?;
        [Self::Off, Self::Report, Self::Suspicious, Self::Quarantine].get(at).copied()
    }
}

/// Definitions that the list of a backend is compared with.
#[derive(Clone, Copy, Debug)]
pub struct PinnedBackend<'a> {
    /// Approved definitions, or those that were seen first.
    pub pins: &'a BackendPins,
    /// True if a reviewer approved them in a lock file. Otherwise they are the ones that were seen before.
    pub is_locked: bool,
    /// True if the lists of this backend are seen for the first time, and there is no lock file.
    pub is_first: bool,
}

/// Action on a definition that differs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PinAction {
    /// The definition is shown, and the difference recorded.
    Reported,
    /// The tool is quarantined; instructions are not shown.
    Quarantined,
}

/// Difference between a backend's list and the definitions it is compared with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PinFinding {
    /// The backend's own name for the tool; `None` for its instructions.
    pub tool: Option<String>,
    /// Kind of the difference in words, such as `changed`.
    pub what: &'static str,
    /// Lines that show the difference.
    pub lines: Vec<String>,
    /// Action of the guard on it.
    pub action: PinAction,
}

/// A definition in a backend's list, prepared for comparison.
#[derive(Debug)]
pub(crate) struct ListedTool<'a> {
    pub name: &'a str,
    pub parsed: Result<ToolDefinition, DefinitionError>,
}

/// Differences of one list, and the definitions of it that are to be remembered.
#[derive(Default, Debug)]
pub(crate) struct PinVerdicts {
    pub findings: Vec<PinFinding>,
    /// True if the comparison was made without a lock file, so that definitions are remembered.
    pub learns: bool,
    /// Tools to remember as seen.
    pub learned: Vec<ToolDefinition>,
    /// True if the instructions are to be remembered as seen.
    pub learns_instructions: bool,
}

impl PinVerdicts {
    /// Returns true if the instructions are withheld.
    pub fn quarantines_instructions(&self) -> bool {
        self.findings.iter().any(|finding| finding.tool.is_none() && finding.action == PinAction::Quarantined)
    }
}

/// Comparison of one list with the definitions approved for its backend.
pub(crate) struct PinCheck<'a> {
    pub mode: PinMode,
    pub backend: PinnedBackend<'a>,
    /// Names of the tools of other backends.
    pub other_names: &'a dyn Fn() -> Vec<Box<str>>,
    /// Returns true if the text of this tool, or of the instructions, hides something or gives orders.
    pub is_suspicious: &'a dyn Fn(Option<&str>) -> bool,
}

impl PinCheck<'_> {
    /// Compares the tools of a list, in their order.
    pub fn tools(&self, listed: Vec<ListedTool<'_>>, verdicts: &mut PinVerdicts) {
        verdicts.learns = !self.backend.is_locked;
        let reserved = ReservedNames::of_gateway();
        let mut definitions = Vec::with_capacity(listed.len());
        for tool in listed {
            match tool.parsed {
                Ok(definition) => definitions.push(definition),
                Err(error) => self.note_unpinnable(tool.name, &error, verdicts),
            }
        }
        let changes = compare(self.backend.pins, &definitions, &reserved);
        let others = self.imitations(&changes);
        for (definition, change) in definitions.into_iter().zip(changes) {
            let imitated = others.iter().find(|one| one.0 == change.name).map(|one| one.1.clone());
            let change = match (change.change, imitated) {
                (PinChange::New | PinChange::Changed { .. }, Some(of)) => PinChange::Confusable { of },
                (change, _) => change,
            };
            let action = self.action(&change, &definition.name);
            let is_first_sight = self.backend.is_first && change == PinChange::New;
            let is_known = self.backend.pins.approves(&definition);
            if let Some(action) = action.filter(|_| !is_first_sight) {
                let (what, lines) = (change.word(), change.lines());
                verdicts.findings.push(PinFinding { tool: Some(definition.name.clone()), what, lines, action });
            }
            if !self.backend.is_locked && action != Some(PinAction::Quarantined) && !is_known {
                verdicts.learned.push(definition);
            }
        }
    }

    /// Compares the instructions of a server.
    pub fn instructions(&self, text: Option<&str>, verdicts: &mut PinVerdicts) {
        let change = compare_instructions(self.backend.pins, text);
        let (what, diff) = match change {
            InstructionsChange::Same => return,
            InstructionsChange::New => ("new", Vec::new()),
            InstructionsChange::Changed { diff } => ("changed", diff),
        };
        // Without a lock file, instructions that appear are remembered like those that were there at first.
        let is_known = !self.backend.is_locked && what == "new";
        let is_quarantined = match self.mode {
            PinMode::Off | PinMode::Report => false,
            PinMode::Suspicious => what == "changed" && (self.is_suspicious)(None),
            PinMode::Quarantine => self.backend.is_locked || what == "changed",
        };
        let action = if is_quarantined { PinAction::Quarantined } else { PinAction::Reported };
        if !is_known {
            let lines = diff.iter().map(ToString::to_string).collect();
            verdicts.findings.push(PinFinding { tool: None, what, lines, action });
        }
        verdicts.learns_instructions = !self.backend.is_locked && !is_quarantined;
    }

    /// Returns the action on a tool; `None` if it is approved.
    fn action(&self, change: &PinChange, name: &str) -> Option<PinAction> {
        if !change.needs_approval() {
            return None;
        }
        let is_quarantined = match self.mode {
            PinMode::Off | PinMode::Report => false,
            // What is there at first sight has not changed.
            _ if self.backend.is_first => false,
            PinMode::Quarantine => true,
            PinMode::Suspicious => match change {
                PinChange::New => false,
                PinChange::Confusable { .. } | PinChange::Reserved | PinChange::Repeated => true,
                _ => (self.is_suspicious)(Some(name)),
            },
        };
        Some(if is_quarantined { PinAction::Quarantined } else { PinAction::Reported })
    }

    /// Notes a definition that cannot be compared. It is never shown where others have to be approved.
    fn note_unpinnable(&self, name: &str, error: &DefinitionError, verdicts: &mut PinVerdicts) {
        let action = match self.mode {
            PinMode::Quarantine if !self.backend.is_first => PinAction::Quarantined,
            _ => PinAction::Reported,
        };
        let (tool, lines) = (Some(name.to_owned()), vec![error.to_string()]);
        verdicts.findings.push(PinFinding { tool, what: "not comparable", lines, action });
    }

    /// Returns the tools that are not approved and look like another backend's tool, with its name. Names that are
    /// equal, or differ in case only, are ordinary: clients are shown them with their backends.
    fn imitations(&self, changes: &[ToolChange]) -> Vec<(String, String)> {
        let is_open = |change: &&ToolChange| matches!(change.change, PinChange::New | PinChange::Changed { .. });
        if !changes.iter().any(|change| is_open(&change)) {
            return Vec::new();
        }
        let others = (self.other_names)();
        let mut index = NameIndex::default();
        others.iter().for_each(|name| index.add(name));
        let imitated = |change: &ToolChange| {
            let found = index.find(&change.name).filter(|found| found.resemblance == Resemblance::Look)?;
            (found.name != change.name).then(|| (change.name.clone(), found.name.to_owned()))
        };
        changes.iter().filter(is_open).filter_map(imitated).collect()
    }
}

#[cfg(test)]
mod tests;
