//! Judgement of a listing against the approved definitions.

use super::canonical_value::CanonicalValue;
use super::definition_diff::{DiffKind, DiffLine, diff_values};
use super::lock_file::{ApprovedDefinition, BackendPins, MAX_LOCK_FILE, StoredText, excerpt};
use super::look_alikes::{LookAlike, NameIndex, Resemblance, case_form, look_forms};
use super::tool_definition::{DefinitionHash, ToolDefinition, hash_instructions};
use signalbox_wire::printable;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Names that no backend may use.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReservedNames {
    /// Forms of the names of the gateway's own tools, for comparison.
    names: BTreeSet<String>,
    /// Forms of the prefixes of such names.
    prefixes: Vec<String>,
}

impl ReservedNames {
    /// Creates the list of the gateway's own tools and of prefixes that are kept for it, such as `signalbox_`. A
    /// name that merely looks reserved is reserved too.
    #[must_use]
    pub fn new(names: &[&str], prefixes: &[&str]) -> Self {
        let forms = |name: &&str| look_forms(name).into_iter().chain([case_form(name)]);
        let prefixes = prefixes.iter().map(|prefix| reserved_form(prefix)).filter(|prefix| !prefix.is_empty());
        Self { names: names.iter().flat_map(forms).collect(), prefixes: prefixes.collect() }
    }

    /// Creates the list of names that only the gateway may use.
    #[must_use]
    pub fn of_gateway() -> Self {
        Self::new(&[], &["signalbox_"])
    }

    fn hold(&self, name: &str) -> bool {
        let form = reserved_form(name);
        self.prefixes.iter().any(|prefix| form.starts_with(prefix.as_str()))
            || look_forms(name).iter().any(|form| self.names.contains(form))
            || self.names.contains(&case_form(name))
    }
}

/// Returns the skeleton in lower case without separators. A prefix of a name is a prefix of the form too.
fn reserved_form(name: &str) -> String {
    let [_, form] = look_forms(name);
    form
}

/// Difference between a listed tool and the approvals.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PinChange {
    /// A reviewer approved exactly this definition under this name.
    Same,
    /// The tool was never approved.
    New,
    /// Another definition was approved under this name.
    Changed {
        /// Differences to the definition that was approved last.
        diff: Vec<DiffLine>,
    },
    /// The tool has the schemas of an approved one that is no longer listed.
    Renamed {
        /// Name of the approved tool.
        from: String,
        /// Differences apart from the name.
        diff: Vec<DiffLine>,
    },
    /// An approved tool is not listed. Nothing needs to be approved: a server may list it again.
    Gone,
    /// The name differs from that of another tool in case or separators only.
    CaseVariant {
        /// Name of the other tool.
        of: String,
    },
    /// The name looks like that of another tool.
    Confusable {
        /// Name of the other tool.
        of: String,
    },
    /// The name belongs to the gateway.
    Reserved,
    /// The same name was listed before with another definition. Clients disagree on which one counts.
    Repeated,
}

impl PinChange {
    /// Returns `true` if the tool must not be offered before a reviewer approves it.
    #[must_use]
    pub fn needs_approval(&self) -> bool {
        !matches!(self, Self::Same | Self::Gone)
    }

    /// Returns the word for it in listings and records.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Same => "approved",
            Self::New => "new",
            Self::Changed { .. } => "changed",
            Self::Renamed { .. } => "renamed",
            Self::Gone => "gone",
            Self::CaseVariant { .. } => "named like another tool but for case",
            Self::Confusable { .. } => "named to look like another tool",
            Self::Reserved => "named like a tool of the gateway",
            Self::Repeated => "listed twice with different definitions",
        }
    }

    /// Returns the lines that explain it.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Changed { diff } => diff.iter().map(ToString::to_string).collect(),
            Self::Renamed { from, diff } => {
                let first = format!("was `{}`, which is gone", printable::one_line(from));
                std::iter::once(first).chain(diff.iter().map(ToString::to_string)).collect()
            }
            Self::CaseVariant { of } | Self::Confusable { of } => {
                vec![format!("the other one is `{}`", printable::one_line(of))]
            }
            _ => Vec::new(),
        }
    }
}

/// Result of the comparison of one listed tool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolChange {
    /// Name of the tool at its server.
    pub name: String,
    /// Difference from the definitions approved under its name.
    pub change: PinChange,
}

/// Difference between the instructions of a server and the approved ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InstructionsChange {
    /// The text is approved, or there is none.
    Same,
    /// The server has instructions, and none were approved before.
    New,
    /// Instructions were approved, but not this text.
    Changed {
        /// Difference to the text that was approved last.
        diff: Vec<DiffLine>,
    },
}

/// Compares a server's instructions with the approved ones.
#[must_use]
pub fn compare_instructions(pinned: &BackendPins, text: Option<&str>) -> InstructionsChange {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return InstructionsChange::Same };
    let hash = hash_instructions(text);
    match pinned.instructions.last() {
        _ if pinned.instructions.iter().any(|one| one.hash == hash) => InstructionsChange::Same,
        None => InstructionsChange::New,
        Some(last) => {
            let (old, new) = match &last.text {
                StoredText::Whole(old) => (old.clone(), text.to_owned()),
                StoredText::Excerpt(old) => (old.clone(), text.chars().take(old.chars().count()).collect()),
            };
            let named = |text| CanonicalValue::Object([("instructions".to_owned(), CanonicalValue::Text(text))].into());
            let is_excerpt = matches!(last.text, StoredText::Excerpt(_));
            InstructionsChange::Changed { diff: explain(diff_values(&named(old), &named(new)), is_excerpt) }
        }
    }
}

/// Compares a listing with the approved definitions of its server. Returns a change per listed tool, in their order,
/// followed by the approved tools that are gone.
#[must_use]
pub fn compare(pinned: &BackendPins, listed: &[ToolDefinition], reserved: &ReservedNames) -> Vec<ToolChange> {
    let comparison = Comparison::new(pinned, listed);
    let mut listed_hashes: HashMap<&str, DefinitionHash> = HashMap::new();
    let mut names = NameIndex::default();
    pinned.tools.keys().for_each(|name| names.add(name));
    let mut changes = Vec::with_capacity(listed.len());
    let mut renamed: BTreeSet<&str> = BTreeSet::new();
    for tool in listed {
        let earlier = listed_hashes.insert(&tool.name, tool.hash);
        let change = if reserved.hold(&tool.name) {
            PinChange::Reserved
        } else if earlier.is_some_and(|earlier| earlier != tool.hash) {
            PinChange::Repeated
        } else if let Some(approved) = pinned.tools.get(&tool.name).filter(|approved| !approved.is_empty()) {
            compare_definitions(approved, tool)
        } else if let Some(found) = names.find(&tool.name).filter(|found| found.name != tool.name) {
            look_alike(found)
        } else if let Some(from) = comparison.former_name(tool) {
            renamed.insert(from);
            let approved = pinned.tools.get(from).and_then(|approved| approved.last());
            PinChange::Renamed { from: from.to_owned(), diff: approved.map_or(Vec::new(), |old| diff_to(old, tool)) }
        } else {
            PinChange::New
        };
        names.add(&tool.name);
        changes.push(ToolChange { name: tool.name.clone(), change });
    }
    let gone = comparison.gone.iter().filter(|name| !renamed.contains(*name));
    changes.extend(gone.map(|name| ToolChange { name: (*name).to_owned(), change: PinChange::Gone }));
    changes
}

fn compare_definitions(approved: &[ApprovedDefinition], tool: &ToolDefinition) -> PinChange {
    match approved.last() {
        _ if approved.iter().any(|one| one.hash == tool.hash) => PinChange::Same,
        Some(last) => PinChange::Changed { diff: diff_to(last, tool) },
        None => PinChange::New,
    }
}

fn look_alike(found: LookAlike<'_>) -> PinChange {
    let of = found.name.to_owned();
    match found.resemblance {
        Resemblance::Case => PinChange::CaseVariant { of },
        Resemblance::Look => PinChange::Confusable { of },
    }
}

/// Returns the differences to an approved definition, or to what the lock file keeps of it.
fn diff_to(approved: &ApprovedDefinition, tool: &ToolDefinition) -> Vec<DiffLine> {
    let (StoredText::Whole(json) | StoredText::Excerpt(json)) = &approved.text;
    let is_excerpt = matches!(approved.text, StoredText::Excerpt(_));
    let old = CanonicalValue::parse(json.as_bytes(), MAX_LOCK_FILE);
    let old = old.unwrap_or_else(|_| CanonicalValue::Object(BTreeMap::new()));
    match is_excerpt {
        true => explain(diff_values(&old, &excerpt(&tool.content)), approved.hash != tool.hash),
        false => diff_values(&old, &tool.content),
    }
}

/// Adds a line that says that there may be more differences than the lock file can show.
fn explain(mut lines: Vec<DiffLine>, is_partial: bool) -> Vec<DiffLine> {
    if is_partial {
        lines.push(DiffLine { place: "(rest)".to_owned(), kind: DiffKind::Unknown });
    }
    lines
}

/// Approved tools that are no longer listed, and tools that may be their successors.
struct Comparison<'a> {
    gone: BTreeSet<&'a str>,
    /// Name of the only approved tool with this hash or shape that is gone; `None` if there are several.
    by_hash: HashMap<DefinitionHash, Option<&'a str>>,
    by_shape: HashMap<DefinitionHash, Option<&'a str>>,
    /// Number of listed tools with this shape that have no approval under their name.
    successors: HashMap<DefinitionHash, usize>,
}

impl<'a> Comparison<'a> {
    fn new(pinned: &'a BackendPins, listed: &[ToolDefinition]) -> Self {
        let names: BTreeSet<&str> = listed.iter().map(|tool| tool.name.as_str()).collect();
        let is_gone = |name: &&str| !names.contains(name);
        let gone: BTreeSet<&str> = pinned.tools.keys().map(String::as_str).filter(is_gone).collect();
        let (mut by_hash, mut by_shape) = (HashMap::new(), HashMap::new());
        let add = |map: &mut HashMap<DefinitionHash, Option<&'a str>>, key: DefinitionHash, name: &'a str| {
            map.entry(key).and_modify(|other| *other = other.filter(|other| *other == name)).or_insert(Some(name));
        };
        for name in &gone {
            for approved in pinned.tools.get(*name).into_iter().flatten() {
                add(&mut by_hash, approved.hash, name);
                add(&mut by_shape, approved.shape, name);
            }
        }
        let mut successors = HashMap::new();
        for tool in listed.iter().filter(|tool| !pinned.tools.contains_key(&tool.name)) {
            *successors.entry(tool.shape).or_insert(0) += 1;
        }
        Self { gone, by_hash, by_shape, successors }
    }

    /// Returns the name under which a tool was approved, if only one tool can be meant.
    fn former_name(&self, tool: &ToolDefinition) -> Option<&'a str> {
        let is_only = self.successors.get(&tool.shape).is_some_and(|count| *count == 1);
        let by_shape = || self.by_shape.get(&tool.shape).copied().flatten().filter(|_| is_only && tool.has_parameters);
        self.by_hash.get(&tool.hash).copied().flatten().or_else(by_shape)
    }
}

#[cfg(test)]
mod tests;
