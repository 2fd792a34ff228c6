//! `signalbox tools pin`, `diff` and `approve`: definitions of tools that were reviewed, in a file to commit.

use crate::failure::Failure;
use crate::output;
use signalbox_assembly::pin_book::read_lock;
use signalbox_control::definition_list::DefinitionList;
use signalbox_guard::pins::{
    Approval, BackendPins, InstructionsChange, LockFile, PinChange, ReservedNames, ToolDefinition, compare,
    compare_instructions,
};
use signalbox_wire::printable;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// Name by which the instructions of a server are approved, as `BACKEND/(instructions)`. No tool can be called so.
const INSTRUCTIONS: &str = "(instructions)";

/// Definitions that one backend lists now.
struct ListedBackend {
    instructions: Vec<String>,
    tools: Vec<ToolDefinition>,
}

/// Difference between a listed definition and the approved one.
struct ListedChange {
    /// The backend's own name for the tool.
    name: String,
    word: &'static str,
    lines: Vec<String>,
    needs_approval: bool,
}

/// Approves every listed definition, and writes the file.
pub(super) fn pin(listed: &DefinitionList, lock: &Path, by: &str) -> Result<ExitCode, Failure> {
    let (mut file, listed) = (read(lock)?.unwrap_or_default(), backends(listed)?);
    let count = listed.values().map(|backend| backend.tools.len()).sum::<usize>();
    for (name, backend) in &listed {
        approve_all(file.backends.entry(name.clone()).or_default(), backend, by);
    }
    write(lock, &file)?;
    output::result(&format!("{}: {count} tools of {} backends are approved\n", lock.display(), listed.len()))?;
    Ok(ExitCode::SUCCESS)
}

/// Shows what differs from the approved definitions. Fails if anything needs approval.
pub(super) fn diff(listed: &DefinitionList, lock: &Path, json: bool) -> Result<ExitCode, Failure> {
    let file = read(lock)?.unwrap_or_default();
    let (mut text, mut rows, mut pending) = (String::new(), Vec::new(), 0_usize);
    for (backend, known) in backends(listed)? {
        let quarantined = listed.backends.get(&backend).map_or(&[][..], |one| &one.quarantined);
        for change in changes(&file, &backend, &known) {
            pending += usize::from(change.needs_approval);
            let is_off = quarantined.contains(&change.name);
            rows.push(serde_json::json!({"backend": backend, "tool": change.name, "change": change.word,
                "lines": change.lines, "needs_approval": change.needs_approval, "quarantined": is_off}));
            let off = if is_off { ", in quarantine" } else { "" };
            let _ = writeln!(text, "{backend}/{}: {}{off}", printable::one_line(&change.name), change.word);
            for line in change.lines {
                let _ = writeln!(text, "    {line}");
            }
        }
    }
    if rows.is_empty() {
        text.push_str("every listed tool is approved\n");
    }
    output::in_form(json, &if json { format!("{}\n", serde_json::Value::from(rows)) } else { text })?;
    Ok(if pending == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Approves the listed definitions of these tools, `BACKEND/TOOL`, after showing what differs. Without a file, one is
/// begun that also approves every other tool that is not in quarantine.
pub(super) fn approve(listed: &DefinitionList, names: &[String], lock: &Path, by: &str) -> Result<ExitCode, Failure> {
    let (read, known) = (read(lock)?, backends(listed)?);
    let is_begun = read.is_none();
    let mut file = read.unwrap_or_default();
    let mut text = String::new();
    for name in names {
        let unknown = || Failure::Usage(format!("no backend lists the tool `{name}`; write it as BACKEND/TOOL"));
        let (backend, tool) = name.split_once('/').ok_or_else(unknown)?;
        let known = known.get(backend).ok_or_else(unknown)?;
        let is_listed = known.tools.iter().any(|one| one.name == tool);
        if !is_listed && (tool != INSTRUCTIONS || known.instructions.is_empty()) {
            return Err(unknown());
        }
        let change = changes(&file, backend, known).into_iter().find(|change| change.name == tool);
        let word = change.as_ref().map_or("approved before", |change| change.word);
        let _ = writeln!(text, "{}: {word}, approved now", printable::one_line(name));
        for line in change.iter().flat_map(|change| &change.lines) {
            let _ = writeln!(text, "    {line}");
        }
        let pins = file.backends.entry(backend.to_owned()).or_default();
        known.tools.iter().filter(|one| one.name == tool).for_each(|one| approve_tool(pins, one, by));
        if tool == INSTRUCTIONS {
            approve_instructions(pins, known, by);
        }
    }
    if is_begun {
        let count = approve_usable(&mut file, listed, &known, by);
        let _ = writeln!(text, "{}: begun, with {count} other tools that are in use", lock.display());
    }
    write(lock, &file)?;
    output::result(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Approves everything that is not in quarantine, and returns the number of these tools.
fn approve_usable(
    file: &mut LockFile,
    listed: &DefinitionList,
    known: &BTreeMap<String, ListedBackend>,
    by: &str,
) -> usize {
    let mut count = 0;
    for (name, backend) in known {
        let quarantined = listed.backends.get(name).map_or(&[][..], |one| &one.quarantined);
        let pins = file.backends.entry(name.clone()).or_default();
        approve_instructions(pins, backend, by);
        for tool in backend
            .tools
            .iter()
            .filter(|tool| !quarantined.contains(&tool.name) && !pins.approves(tool))
            .collect::<Vec<_>>()
        {
            approve_tool(pins, tool, by);
            count += 1;
        }
    }
    count
}

fn approve_all(pins: &mut BackendPins, backend: &ListedBackend, by: &str) {
    backend.tools.iter().for_each(|tool| approve_tool(pins, tool, by));
    approve_instructions(pins, backend, by);
}

fn approval(by: &str) -> Approval {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    Approval::new(i64::try_from(now).unwrap_or(i64::MAX), by)
}

/// Approves a definition unless that was done before, so that the file keeps who did it first.
fn approve_tool(pins: &mut BackendPins, tool: &ToolDefinition, by: &str) {
    if !pins.approves(tool) {
        pins.approve_tool(tool, approval(by));
    }
}

fn approve_instructions(pins: &mut BackendPins, backend: &ListedBackend, by: &str) {
    for text in &backend.instructions {
        if compare_instructions(pins, Some(text)) != InstructionsChange::Same {
            pins.approve_instructions(text, approval(by));
        }
    }
}

/// Returns what differs from the approvals, tools first.
fn changes(file: &LockFile, backend: &str, listed: &ListedBackend) -> Vec<ListedChange> {
    let none = BackendPins::default();
    let pins = file.backends.get(backend).unwrap_or(&none);
    let tools = compare(pins, &listed.tools, &ReservedNames::of_gateway()).into_iter();
    let tools = tools.filter(|tool| tool.change != PinChange::Same).map(|tool| ListedChange {
        word: tool.change.word(),
        lines: tool.change.lines(),
        needs_approval: tool.change.needs_approval(),
        name: tool.name,
    });
    let of_instructions = |text: &String| match compare_instructions(pins, Some(text)) {
        InstructionsChange::Same => None,
        InstructionsChange::New => Some(("new", vec![printable::beginning(text, 200)])),
        InstructionsChange::Changed { diff } => Some(("changed", diff.iter().map(ToString::to_string).collect())),
    };
    let instructions = listed.instructions.iter().filter_map(of_instructions);
    let instructions = instructions.map(|(word, lines)| ListedChange {
        name: INSTRUCTIONS.to_owned(),
        word,
        lines,
        needs_approval: true,
    });
    tools.chain(instructions).collect()
}

fn backends(listed: &DefinitionList) -> Result<BTreeMap<String, ListedBackend>, Failure> {
    let mut all = BTreeMap::new();
    for (name, backend) in &listed.backends {
        let parse = |definition: &serde_json::value::RawValue| {
            let parsed = ToolDefinition::parse(definition.get().as_bytes());
            parsed.map_err(|error| Failure::Usage(format!("a tool of `{name}`: {error}")))
        };
        let tools = backend.tools.iter().map(|definition| parse(definition)).collect::<Result<_, _>>()?;
        all.insert(name.clone(), ListedBackend { instructions: backend.instructions.clone(), tools });
    }
    Ok(all)
}

fn read(lock: &Path) -> Result<Option<LockFile>, Failure> {
    read_lock(lock).map_err(|error| Failure::Usage(error.to_string()))
}

/// Replaces the file as a whole, so that a reader never sees half of it.
fn write(lock: &Path, file: &LockFile) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Usage(format!("{}: {error}", lock.display()));
    let part = lock.with_extension(format!("{}.part", std::process::id()));
    std::fs::write(&part, file.to_string()).map_err(failed)?;
    std::fs::rename(&part, lock).map_err(failed)
}
