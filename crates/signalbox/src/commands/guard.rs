//! `signalbox guard`: tries the guard on a text, and makes canaries.

use crate::cli::{CanaryCommand, CanaryShape, Global, GuardCommand, TextPosition};
use crate::failure::Failure;
use crate::output;
use serde_json::json;
use signalbox_assembly::canary_file::CanaryFile;
use signalbox_config::{Config, Overrides};
use signalbox_guard::canary::{Canary, CanaryKey, CanaryKind, find};
use signalbox_guard::{ContentClass, Guard, GuardSecrets};
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;

/// Longest text that is read, in bytes.
const MAX_TEXT: u64 = 64 * 1024 * 1024;

/// Runs the command by the configuration of the working folder, or the one that is named.
pub(super) async fn run(global: &Global, command: GuardCommand) -> Result<ExitCode, Failure> {
    let config = super::load(global, Overrides::default())?.config;
    match command {
        GuardCommand::Test { file, position } => test(&config, &file, position, global.json),
        GuardCommand::Canary { command: CanaryCommand::New { shape, label } } => {
            let made = new_canary(&config, shape, &label)?;
            // A running gateway recognises the value from now on.
            super::credentials::announce(global).await;
            output::result(&format!("{}\n", made.value()))?;
            output::say(format_args!("its id is {}; calls that hold it are refused, see guard.canaries", made.id()));
            Ok(ExitCode::SUCCESS)
        }
        GuardCommand::Canary { command: CanaryCommand::Find { file } } => find_canaries(&config, &file, global.json),
    }
}

/// Reads a file, or standard input for `-`.
fn read(file: &Path) -> Result<String, Failure> {
    let failed = |error: std::io::Error| Failure::Usage(format!("{}: {error}", file.display()));
    let mut bytes = Vec::new();
    if file.as_os_str() == "-" {
        std::io::stdin().take(MAX_TEXT).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        std::fs::File::open(file).map_err(failed)?.take(MAX_TEXT).read_to_end(&mut bytes).map_err(failed)?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Shows what the guard finds in a text. Fails if it would do something about it.
fn test(config: &Config, file: &Path, position: TextPosition, json: bool) -> Result<ExitCode, Failure> {
    let canaries = canary_key(config)?;
    let guard = Guard::new(config.guard.clone(), None, GuardSecrets { flows: [0; 16], canaries });
    let class = class_of(position);
    let found = guard.report(&read(file)?, class);
    let mut text = String::new();
    for one in &found {
        let _ = writeln!(text, "{}: {}\n    {} = {}", one.kind, one.detail, one.key, one.action);
    }
    if found.is_empty() {
        text.push_str("nothing found\n");
    }
    let row = |one: &signalbox_guard::TextFinding| json!({"kind": one.kind, "detail": one.detail, "key": one.key, "action": one.action});
    let rows: Vec<_> = found.iter().map(row).collect();
    output::in_form(json, &if json { format!("{}\n", serde_json::Value::from(rows)) } else { text })?;
    let acts = found.iter().any(|one| !matches!(one.action, "off" | "report"));
    Ok(if acts { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn class_of(position: TextPosition) -> ContentClass {
    match position {
        TextPosition::Result => ContentClass::Results,
        TextPosition::Resource => ContentClass::Resources,
        TextPosition::Prompt => ContentClass::Prompts,
        TextPosition::Error => ContentClass::Errors,
        TextPosition::Log => ContentClass::Logs,
        TextPosition::Progress => ContentClass::Progress,
        TextPosition::Question => ContentClass::Questions,
        TextPosition::Definition => ContentClass::Definitions,
    }
}

fn canary_key(config: &Config) -> Result<Option<[u8; 32]>, Failure> {
    CanaryFile::of(&config.data_dir).read().map_err(|error| Failure::Usage(error.to_string()))
}

fn new_canary(config: &Config, shape: CanaryShape, label: &str) -> Result<Canary, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    let key = CanaryFile::of(&config.data_dir).key().map_err(|error| failed(&error))?;
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| failed(&error))?;
    let kind = match shape {
        CanaryShape::ApiKey => CanaryKind::ApiKey,
        CanaryShape::Email => CanaryKind::Email,
        CanaryShape::Url => CanaryKind::Url,
        CanaryShape::Name => CanaryKind::Name,
    };
    Ok(Canary::new(kind, random, label, &CanaryKey::new(key)))
}

/// Shows the canaries in a text. Fails if there are any.
fn find_canaries(config: &Config, file: &Path, json: bool) -> Result<ExitCode, Failure> {
    let Some(key) = canary_key(config)? else {
        return Err(Failure::Usage("there are no canaries; make one by `signalbox guard canary new`".to_owned()));
    };
    let found = find(&read(file)?, &CanaryKey::new(key));
    let row = |one: &signalbox_guard::canary::CanaryMatch| json!({"id": one.id.to_string(), "form": one.form.to_string(), "at": one.range.start});
    let rows: Vec<_> = found.iter().map(row).collect();
    let lines: String =
        found.iter().map(|one| format!("{} at byte {}, {}\n", one.id, one.range.start, one.form)).collect();
    let text = if found.is_empty() { "no canary found\n".to_owned() } else { lines };
    output::in_form(json, &if json { format!("{}\n", serde_json::Value::from(rows)) } else { text })?;
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
