//! `signalbox rules add|remove|enable|disable`: changes rules in their file, and leaves every other line unchanged
//! (SO-1).
//!
//! A changed file is parsed as the gateway would parse it before it replaces the old one.

use super::load;
use crate::cli::{EditRuleArgs, Global, RulesCommand};
use crate::failure::Failure;
use crate::output;
use serde_json::json;
use signalbox_config::Overrides;
use signalbox_config::rules::read_file;
use signalbox_rules::{Files, OutsideFileError, RuleRow, RuleSet};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Line that begins a rule.
const HEADER: &str = "[[rules]]";

/// A change to one rule.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Edit {
    Remove,
    Enable(bool),
}

/// Edits a file of rules, and checks the result before it replaces the file.
pub(super) fn run(global: &Global, command: &RulesCommand) -> Result<ExitCode, Failure> {
    match command {
        RulesCommand::Add { file, rule } => add(global, file, rule),
        RulesCommand::Remove(args) => change(global, args, Edit::Remove),
        RulesCommand::Enable(args) => change(global, args, Edit::Enable(true)),
        RulesCommand::Disable(args) => change(global, args, Edit::Enable(false)),
        RulesCommand::Check { .. } | RulesCommand::List { .. } | RulesCommand::Test(_) => Ok(ExitCode::SUCCESS),
    }
}

fn add(global: &Global, file: &Path, rule: &str) -> Result<ExitCode, Failure> {
    let mut added = match rule.strip_prefix('@') {
        Some(path) => read(Path::new(path))?,
        None if rule == "-" => standard_input()?,
        None => rule.to_owned(),
    };
    if !added.contains(HEADER) {
        added = format!("{HEADER}\n{added}");
    }
    let old = if file.exists() { read(file)? } else { String::new() };
    let before = if file.exists() { ids(&parse(file, &old)?) } else { Vec::new() };
    let between = if old.is_empty() || old.ends_with("\n\n") { "" } else { "\n" };
    let line_end = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
    let text = format!("{old}{line_end}{between}{}\n", added.trim_end());
    let set = parse(file, &text)?;
    replace(file, &text)?;
    let new: Vec<String> = ids(&set).into_iter().filter(|id| !before.contains(id)).collect();
    let list = new.join(", ");
    tell(global, &json!({"file": file, "added": new}), &format!("added {list} to {}", file.display()))
}

fn change(global: &Global, args: &EditRuleArgs, edit: Edit) -> Result<ExitCode, Failure> {
    let rows = match &args.file {
        Some(file) => parse(file, &read(file)?)?.describe(),
        None => load(global, Overrides::default())?.config.rules.set.describe(),
    };
    let Some(row) = rows.iter().find(|row| row.id == args.id) else {
        return Err(Failure::Usage(format!("there is no rule `{}`; `signalbox rules list` shows all", args.id)));
    };
    let file = args.file.clone().unwrap_or_else(|| PathBuf::from(&row.file));
    let (done, is_so) = match edit {
        Edit::Remove => ("removed", false),
        Edit::Enable(true) => ("enabled", row.enabled),
        Edit::Enable(false) => ("disabled", !row.enabled),
    };
    let told = format!("rule {} is {done} in {}", args.id, file.display());
    if !is_so {
        let text = read(&file)?;
        let by_hand = || {
            let (id, file) = (&args.id, file.display());
            Failure::Refused(format!("rule {id} does not begin with a line `{HEADER}`; edit {file} by hand"))
        };
        let new = edited(&text, row.line, edit).ok_or_else(by_hand)?;
        check(&file, &parse(&file, &new)?, row, edit)?;
        replace(&file, &new)?;
    }
    tell(global, &json!({"file": file, "rule": args.id, "is": done}), &told)
}

/// Returns the text with the rule at this line changed. Returns `None` if the rule is not written as a table of its
/// own.
fn edited(text: &str, line: usize, edit: Edit) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let is_header = |line: &&str| line.trim_end() == HEADER;
    let start = (0..line.min(lines.len())).rev().find(|at| lines.get(*at).is_some_and(is_header))?;
    // Subtables such as `[rules.when]` belong to the rule.
    let is_other = |line: &&str| line.starts_with('[') && !line.starts_with("[rules.") && !line.starts_with("[[rules.");
    let rest = lines.get(start + 1..)?;
    let end = start + 1 + rest.iter().position(is_other).unwrap_or(rest.len());
    let mut new: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    match edit {
        Edit::Remove => _ = new.drain(start..end),
        Edit::Enable(is_enabled) => {
            let own = lines.get(start + 1..end)?;
            let head = own.iter().position(|line| line.starts_with('[')).unwrap_or(own.len());
            let key = own.iter().take(head).position(|line| {
                line.trim_start().strip_prefix("enabled").is_some_and(|rest| rest.trim_start().starts_with('='))
            });
            let written = format!("enabled = {is_enabled}\n");
            match key.and_then(|at| new.get_mut(start + 1 + at)) {
                Some(line) => *line = written,
                None => new.insert(start + 1, written),
            }
        }
    }
    Some(new.concat())
}

/// Refuses an edited text whose rules are not the wanted ones.
fn check(file: &Path, set: &RuleSet, row: &RuleRow, edit: Edit) -> Result<(), Failure> {
    let found = set.describe().iter().find(|one| one.id == row.id).map(|one| one.enabled);
    let wanted = match edit {
        Edit::Remove => None,
        Edit::Enable(is_enabled) => Some(is_enabled),
    };
    if found == wanted {
        return Ok(());
    }
    Err(Failure::Refused(format!("rule {} cannot be changed by itself; edit {} by hand", row.id, file.display())))
}

/// Parses the text of a file of rules, or of a configuration with rules.
fn parse(file: &Path, text: &str) -> Result<RuleSet, Failure> {
    let (name, folder) = (file.display().to_string(), folder_of(file));
    // A configuration has other tables too, so it does not parse as a file of rules.
    let is_configuration = read_file(file).is_err() && file.exists();
    let parsed = match is_configuration {
        true => RuleSet::parse_within(&name, text, &Beside(folder)),
        false => RuleSet::parse_beside(&name, text, &Beside(folder)),
    };
    parsed.map_err(|error| Failure::Usage(error.to_string()))
}

/// Reads the files that rules name, relative to the folder of the rules.
struct Beside<'a>(&'a Path);

impl Files for Beside<'_> {
    fn read(&self, name: &str, most: usize) -> Result<String, OutsideFileError> {
        let text = std::fs::read_to_string(self.0.join(name))?;
        if text.len() > most { Err(OutsideFileError::TooLarge { most }) } else { Ok(text) }
    }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn ids(set: &RuleSet) -> Vec<String> {
    set.describe().into_iter().map(|row| row.id).collect()
}

/// Replaces the content of a file atomically.
fn replace(file: &Path, text: &str) -> Result<(), Failure> {
    let here = |error| Failure::File { path: file.to_owned(), error };
    let mut new = tempfile::NamedTempFile::new_in(folder_of(file)).map_err(here)?;
    new.write_all(text.as_bytes()).map_err(here)?;
    if let Ok(old) = std::fs::metadata(file) {
        new.as_file().set_permissions(old.permissions()).map_err(here)?;
    }
    new.persist(file).map_err(|error| here(error.error))?;
    Ok(())
}

fn read(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file).map_err(|error| Failure::File { path: file.to_owned(), error })
}

fn standard_input() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin().lock().read_to_string(&mut text).map_err(Failure::Start)?;
    Ok(text)
}

fn tell(global: &Global, told: &serde_json::Value, text: &str) -> Result<ExitCode, Failure> {
    match global.json {
        true => output::json(told)?,
        false => output::result(&format!("{text}\n"))?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# Kept.\n[[rules]]\nid = \"one\"\nthen = \"block\"\n\n[[rules]]\nid = \"two\"\nenabled = true # a remark\n\
        then = \"block\"\n[rules.when]\ntool = \"x\"\n\n[gateway]\nlog_level = \"info\"\n";

    fn line_of(text: &str, id: &str) -> usize {
        1 + text.lines().position(|line| line == format!("id = \"{id}\"")).unwrap()
    }

    /// One rule changes, and every other line stays.
    /// Proves SO-1.
    #[test]
    fn rules_are_switched_and_removed_where_they_are_written() {
        let edited = |id: &str, edit| super::edited(FILE, line_of(FILE, id), edit).unwrap();
        let off = edited("one", Edit::Enable(false));
        assert_eq!(off, FILE.replacen("[[rules]]\n", "[[rules]]\nenabled = false\n", 1));
        let off = edited("two", Edit::Enable(false));
        assert_eq!(off, FILE.replace("enabled = true # a remark", "enabled = false"));
        let gone = edited("one", Edit::Remove);
        assert_eq!(gone, FILE.replace("[[rules]]\nid = \"one\"\nthen = \"block\"\n\n", ""));
        let gone = edited("two", Edit::Remove);
        assert!(gone.ends_with("id = \"one\"\nthen = \"block\"\n\n[gateway]\nlog_level = \"info\"\n"), "{gone}");
        assert_eq!(super::edited("rules = [{ id = \"a\", then = \"block\" }]\n", 1, Edit::Remove), None);
    }

    /// Rules are added, switched off and on, and removed; a file that would not be valid is not written.
    /// Proves SO-1.
    #[test]
    fn a_file_of_rules_is_changed_only_to_a_valid_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rules.toml");
        let global = Global { json: true, ..Global::default() };
        let args = |id: &str| EditRuleArgs { id: id.to_owned(), file: Some(file.clone()) };
        let rows = || read_file(&file).unwrap().set.describe();
        let states = || rows().into_iter().map(|row| (row.id, row.enabled)).collect::<Vec<_>>();
        add(&global, &file, "id = \"one\"\nthen = \"block\"").unwrap();
        add(&global, &file, "[[rules]]\nid = \"two\"\nwhen = { tool = \"x\" }\nthen = \"block\"\n").unwrap();
        assert_eq!(states(), [("one".to_owned(), true), ("two".to_owned(), true)]);
        for bad in ["id = \"one\"\nthen = \"block\"", "id = \"three\"\nthen = \"blok\""] {
            assert!(add(&global, &file, bad).is_err(), "{bad}");
        }
        change(&global, &args("one"), Edit::Enable(false)).unwrap();
        assert_eq!(states(), [("one".to_owned(), false), ("two".to_owned(), true)]);
        change(&global, &args("one"), Edit::Enable(true)).unwrap();
        change(&global, &args("two"), Edit::Remove).unwrap();
        assert_eq!(states(), [("one".to_owned(), true)]);
        assert!(change(&global, &args("two"), Edit::Remove).is_err(), "it is gone");
    }
}
