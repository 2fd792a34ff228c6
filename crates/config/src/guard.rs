//! Reads the table `guard`.

use crate::BackendConfig;
use crate::error::{ConfigError, Problem};
use crate::guard_keys::BY_LEVEL;
use crate::read::Table;
use crate::tool_labels::ToolLabelRule;
use crate::values::{bad, folder};
use signalbox_engine::chain::EntryPattern;
use signalbox_guard::pins::{PinMode, PinModes};
use signalbox_guard::privacy::PrivacyClass;
use signalbox_guard::{
    ArgumentFilter, ByContent, CleanMode, ContentClass, FilterAction, FilterActions, FlowRule, GuardLevel,
    GuardSettings, InstructionMode, PrivacyModes, SchemaMode, ToolSettings,
};
use std::path::PathBuf;

/// Checked content of the table `guard`.
pub(crate) struct GuardSection {
    pub settings: GuardSettings,
    /// File of approved definitions, if the table names one.
    pub lock: Option<PathBuf>,
}

/// Checks the table `guard` of a whole file. Its flows may name tools by their labels.
pub(crate) fn check_section(
    root: &Table<'_>,
    labels: Option<&[ToolLabelRule]>,
    backends: &[BackendConfig],
) -> Result<GuardSection, ConfigError> {
    let table = root.table("guard")?;
    let classes = FlowClasses { labels: labels.unwrap_or_default(), backends };
    let mut settings = check(&table, &classes)?;
    if settings.arguments == SchemaMode::Enforce && root.table("relay")?.flag("enabled")? {
        settings.tools.insert(0, relay_tools());
    }
    Ok(GuardSection { settings, lock: folder(&table, "lock")? })
}

/// Returns the settings of the relay's tools: pages check arguments themselves, and clients of its legacy API send some
/// that the published schemas do not allow. Tables of the file come later and count more.
fn relay_tools() -> ToolSettings {
    ToolSettings {
        name: signalbox_relay::BACKEND.into(),
        tools: EntryPattern::new(signalbox_relay::BACKEND),
        arguments: Some(SchemaMode::Report),
        results: None,
        filters: None,
        clean: None,
        privacy: None,
        instructions: None,
    }
}

/// Checks the settings of the table.
fn check(table: &Table<'_>, classes: &FlowClasses<'_>) -> Result<GuardSettings, ConfigError> {
    let level = GuardLevel::of(&table.choice("level")?).unwrap_or_default();
    let by_level = GuardSettings::of_level(level);
    let tools = table.table("tools")?;
    let (clean, instructions, filters) = (table.table("clean")?, table.table("instructions")?, table.table("filters")?);
    let privacy = table.table("privacy")?;
    for class in PrivacyClass::ALL {
        privacy.choice(class.word())?;
    }
    for filter in ArgumentFilter::ALL {
        filters.choice(filter.word())?;
    }
    // The table of keys has a choice for every class, so that only its errors are left to tell.
    for class in ContentClass::ALL {
        clean.choice(class.word())?;
        instructions.choice(class.word())?;
    }
    let chosen = |table: &Table<'_>, key: &str| table.choice(key).ok().filter(|word| word != BY_LEVEL);
    Ok(GuardSettings {
        shadow: table.choice("mode")? == "shadow",
        arguments: schema_mode(table, "arguments")?.unwrap_or(by_level.arguments),
        results: schema_mode(table, "results")?.unwrap_or(by_level.results),
        filters: FilterActions::new(|filter| {
            let word = chosen(&filters, filter.word());
            word.and_then(|word| FilterAction::of(&word)).unwrap_or(level.filter(filter))
        }),
        clean: ByContent::new(|class| {
            let word = chosen(&clean, class.word());
            word.and_then(|word| CleanMode::of(&word)).unwrap_or(level.clean(class))
        }),
        instructions: ByContent::new(|class| {
            let word = chosen(&instructions, class.word());
            word.and_then(|word| InstructionMode::of(&word)).unwrap_or(level.instructions(class))
        }),
        privacy: PrivacyModes::new(|class| {
            let word = chosen(&privacy, class.word());
            word.and_then(|word| CleanMode::of(&word)).unwrap_or(level.privacy(class))
        }),
        canaries: FilterAction::of(&table.choice("canaries")?).unwrap_or(by_level.canaries),
        flows: if level == GuardLevel::Off { Vec::new() } else { flows(&table.table("flows")?, classes)? },
        secret_forms: FilterAction::of(&table.choice("secret_forms")?).unwrap_or(by_level.secret_forms),
        pins: PinMode::of(&table.choice("pins")?).map_or(by_level.pins, PinModes::both),
        tools: tools
            .entries
            .iter()
            .map(|entry| of_tools(&entry.key, &tools.inside(entry)?))
            .collect::<Result<_, _>>()?,
    })
}

/// Labels by which flows name tools.
struct FlowClasses<'a> {
    labels: &'a [ToolLabelRule],
    backends: &'a [BackendConfig],
}

impl FlowClasses<'_> {
    /// Returns the patterns of the tools that a word of a flow means; none for a label that no tool has.
    fn patterns(&self, word: &str) -> Vec<EntryPattern> {
        let (category, trust) = (word.strip_prefix("category:"), word.strip_prefix("trust:"));
        if category.is_none() && trust.is_none() {
            return vec![EntryPattern::new(word)];
        }
        let of_label = |label: &&ToolLabelRule| match category {
            Some(category) => label.categories.iter().any(|one| one == category),
            None => label.trust.is_some_and(|level| Some(level.word()) == trust),
        };
        let of_backend = |backend: &&BackendConfig| match category {
            Some(category) => backend.category.as_deref() == Some(category),
            None => Some(backend.trust_level.word()) == trust,
        };
        let labels = self.labels.iter().filter(of_label).map(|label| EntryPattern::new(&label.pattern));
        labels.chain(self.backends.iter().filter(of_backend).map(|backend| EntryPattern::new(&backend.name))).collect()
    }
}

/// Maximum number of flows: the tracker has a bit for each.
const MAX_FLOWS: usize = 32;

fn flows(table: &Table<'_>, classes: &FlowClasses<'_>) -> Result<Vec<FlowRule>, ConfigError> {
    if table.entries.len() > MAX_FLOWS {
        return Err(table.error(Problem::BadHiddenValue("at most 32 flows")));
    }
    table.entries.iter().map(|entry| flow(&entry.key, &table.inside(entry)?, classes)).collect()
}

fn flow(name: &str, table: &Table<'_>, classes: &FlowClasses<'_>) -> Result<FlowRule, ConfigError> {
    let patterns = |key: &str| -> Result<Vec<EntryPattern>, ConfigError> {
        let mut all = Vec::new();
        for text in table.texts(key)? {
            let found = classes.patterns(&text.value);
            if found.is_empty() {
                return Err(bad(table, &text, "a category or trust level that a backend or a tool has"));
            }
            all.extend(found);
        }
        if all.is_empty() {
            return Err(table.key_error(key, Problem::BadHiddenValue("at least one tool")));
        }
        Ok(all)
    };
    Ok(FlowRule {
        name: name.into(),
        from: patterns("from")?,
        to: patterns("to")?,
        mode: if table.choice("action")? == "report" { SchemaMode::Report } else { SchemaMode::Enforce },
        min_chars: table.count("min_chars")?,
    })
}

fn of_tools(pattern: &str, table: &Table<'_>) -> Result<ToolSettings, ConfigError> {
    let (backend, name) = pattern.split_once('/').unwrap_or((pattern, "*"));
    if backend.is_empty() || name.is_empty() {
        let expected = "a pattern `BACKEND` or `BACKEND/NAME`, with `*` and `?`";
        return Err(table.error(Problem::BadHiddenValue(expected)));
    }
    Ok(ToolSettings {
        name: pattern.into(),
        tools: EntryPattern::new(pattern),
        arguments: schema_mode(table, "arguments")?,
        results: schema_mode(table, "results")?,
        filters: FilterAction::of(&table.choice("filters")?),
        clean: CleanMode::of(&table.choice("clean")?),
        privacy: CleanMode::of(&table.choice("privacy")?),
        instructions: InstructionMode::of(&table.choice("instructions")?),
    })
}

/// Returns the mode of a key, or `None` if it follows the level.
fn schema_mode(table: &Table<'_>, key: &str) -> Result<Option<SchemaMode>, ConfigError> {
    let word = table.choice(key)?;
    Ok(if word == BY_LEVEL { None } else { SchemaMode::of(&word) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Overrides};
    use std::path::Path;

    fn load(text: &str) -> Result<GuardSettings, ConfigError> {
        let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        let mut guard = Config::parse(Path::new("signalbox.toml"), text, &env, &Overrides::default())?.config.guard;
        guard.tools.retain(|tool| *tool != relay_tools());
        Ok(guard)
    }

    #[test]
    fn a_level_sets_every_key_that_is_not_set_itself() {
        assert_eq!(load("").unwrap(), GuardSettings::of_level(GuardLevel::Standard));
        assert!(load("[guard]\nlevel = 'off'\n").unwrap().is_off());
        for (level, arguments, results) in [
            ("observe", SchemaMode::Report, SchemaMode::Report),
            ("standard", SchemaMode::Enforce, SchemaMode::Report),
            ("strict", SchemaMode::Enforce, SchemaMode::Enforce),
        ] {
            let settings = load(&format!("[guard]\nlevel = '{level}'\n")).unwrap();
            assert_eq!((settings.arguments, settings.results), (arguments, results), "{level}");
            let settings = load(&format!("[guard]\nlevel = '{level}'\narguments = 'off'\n")).unwrap();
            assert_eq!((settings.arguments, settings.results), (SchemaMode::Off, results), "{level}");
        }
        assert!(load("[guard]\nmode = 'shadow'\n").unwrap().shadow);
    }

    #[test]
    fn modes_for_content_are_those_of_the_level_and_of_their_own_keys() {
        use ContentClass as C;
        let settings = load("[guard.clean]\nresults = 'clean'\n[guard.instructions]\nlogs = 'off'\n").unwrap();
        assert_eq!(
            (settings.clean.of(C::Results), settings.clean.of(C::Resources)),
            (CleanMode::Clean, CleanMode::Report)
        );
        assert_eq!(settings.clean.of(C::Definitions), CleanMode::Clean);
        let of = |class| settings.instructions.of(class);
        assert_eq!((of(C::Results), of(C::Logs)), (InstructionMode::Mark, InstructionMode::Off));
        let tool = load("[guard.tools.'files/*']\nclean = 'off'\ninstructions = 'block'\n").unwrap();
        assert_eq!(
            (tool.tools[0].clean, tool.tools[0].instructions),
            (Some(CleanMode::Off), Some(InstructionMode::Block))
        );
        assert!(load("[guard.clean]\nresults = 'mark'\n").is_err());
        assert!(load("[guard.clean]\nanswers = 'clean'\n").is_err());
    }

    #[test]
    fn settings_of_some_tools_are_read_by_pattern() {
        let settings = load("[guard.tools.'files/*']\narguments = 'report'\n").unwrap();
        let [tool] = &settings.tools[..] else { panic!("{settings:?}") };
        assert_eq!((&*tool.name, tool.arguments, tool.results), ("files/*", Some(SchemaMode::Report), None));
        assert!(load("[guard.tools.'/x']\narguments = 'off'\n").is_err());
        assert!(load("[guard]\narguments = 'maybe'\n").is_err());
    }
}
