//! `signalbox rules`: checks, lists and tries out rules.

use super::{load, rules_edit};
use crate::cli::{Global, RulesCommand, TestArgs, TestPhase};
use crate::failure::Failure;
use crate::output;
use serde_json::{Value, json};
use signalbox_assembly::name_check;
use signalbox_assembly::recording::unix_nanos;
use signalbox_config::rules::read_file;
use signalbox_config::{Overrides, Rules};
use signalbox_control::table;
use signalbox_engine::chain::{Effect, HoldQuestion, Phase, Verdict};
use signalbox_rules::{AssumedContext, RuleRow, RuleSet, TrialOutcome, try_message};
use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

/// Maximum size of a message to try, in bytes.
const LARGEST: u64 = 64 * 1024 * 1024;

/// Text shown if no rules are configured.
const NO_RULES: &str = "there are no rules";

pub(super) fn run(global: &Global, command: RulesCommand) -> Result<ExitCode, Failure> {
    let file = match &command {
        RulesCommand::Check { file } | RulesCommand::List { file } => file,
        RulesCommand::Test(args) => &args.file,
        _ => return rules_edit::run(global, &command),
    };
    if let RulesCommand::Check { file: None } = &command {
        let config = load(global, Overrides::default())?.config;
        let warnings = name_check::warnings(&config, &name_check::kept_catalog(&config));
        return check(global, &config.rules.set, &warnings);
    }
    let set = rules(global, file.as_deref())?;
    match &command {
        RulesCommand::Check { .. } => {
            let warnings: Vec<String> = set.warnings().iter().map(ToString::to_string).collect();
            check(global, &set, &warnings)
        }
        RulesCommand::List { .. } => list(global, &set),
        RulesCommand::Test(args) => test(global, &set, args),
        _ => rules_edit::run(global, &command),
    }
}

fn rules(global: &Global, file: Option<&Path>) -> Result<Arc<RuleSet>, Failure> {
    let Rules { set, .. } = match file {
        Some(file) => read_file(file)?,
        None => load(global, Overrides::default())?.config.rules,
    };
    Ok(set)
}

fn check(global: &Global, set: &RuleSet, warnings: &[String]) -> Result<ExitCode, Failure> {
    if global.json {
        output::json(&json!({"rules": set.len(), "version": set.version(), "warnings": warnings}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text: String = warnings.iter().map(|warning| format!("warning: {}\n", table::harmless(warning))).collect();
    text.push_str(&match set.len() {
        0 => format!("{NO_RULES}\n"),
        1 => "1 rule is fine\n".to_owned(),
        count => format!("{count} rules are fine\n"),
    });
    output::result(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn list(global: &Global, set: &RuleSet) -> Result<ExitCode, Failure> {
    let rows = set.describe();
    if global.json {
        let all: Vec<Value> = rows.iter().map(row_json).collect();
        output::json(&Value::from(all))?;
        return Ok(ExitCode::SUCCESS);
    }
    let lines: Vec<Vec<String>> = rows.iter().map(row).collect();
    output::result(&table::render(&["RULE", "PRIORITY", "ON", "WHEN", "THEN", "WHERE"], &lines))?;
    Ok(ExitCode::SUCCESS)
}

fn row(rule: &RuleRow) -> Vec<String> {
    let on = if rule.enabled { rule.phases.clone() } else { "switched off".to_owned() };
    let place = format!("{}:{}", rule.file, rule.line);
    vec![rule.id.clone(), rule.priority.to_string(), on, rule.when.clone(), rule.then.join(", "), place]
}

fn row_json(rule: &RuleRow) -> Value {
    json!({
        "id": rule.id,
        "name": rule.name,
        "enabled": rule.enabled,
        "priority": rule.priority,
        "phases": rule.phases,
        "methods": rule.methods,
        "when": rule.when,
        "then": rule.then,
        "file": rule.file,
        "line": rule.line,
    })
}

fn test(global: &Global, set: &RuleSet, args: &TestArgs) -> Result<ExitCode, Failure> {
    let message = message(args)?;
    let phase = match args.phase {
        TestPhase::Request => Phase::Request,
        TestPhase::Response => Phase::Response,
        TestPhase::Question => Phase::ServerAsks,
        TestPhase::Answer => Phase::ClientAnswers,
        TestPhase::GatewayRequest => Phase::ToGateway,
        TestPhase::GatewayResponse => Phase::FromGateway,
    };
    let supposed = AssumedContext {
        phase: Some(phase),
        method: Some(args.method.clone()),
        tool: args.tool.clone(),
        backend: args.backend.clone(),
        principal: args.principal.clone(),
        unix_ms: unix_nanos() / 1_000_000,
        ..AssumedContext::default()
    };
    let tried = try_message(set, &message, &supposed, Instant::now())
        .map_err(|refusal| Failure::Usage(format!("the message cannot be used: {refusal}")))?;
    let text = match global.json {
        true => format!("{}\n", tried_json(set, &tried)),
        false if set.is_empty() => format!("{NO_RULES}, so the message passes\n"),
        false => tried_text(&tried),
    };
    output::in_form(global.json, &text)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the message to try: from `--tool` and `--args`, a literal, standard input or a file.
fn message(args: &TestArgs) -> Result<Vec<u8>, Failure> {
    let Some(given) = &args.message else {
        let arguments: Value = serde_json::from_str(args.args.as_deref().unwrap_or("{}"))
            .map_err(|error| Failure::Usage(format!("--args is not valid JSON: {error}")))?;
        let Some(tool) = &args.tool else {
            return Err(Failure::Usage("give --message, or --tool with --args".to_owned()));
        };
        let params = json!({"name": tool, "arguments": arguments});
        return Ok(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string().into());
    };
    if given.trim_start().starts_with('{') {
        return Ok(given.clone().into_bytes());
    }
    let mut bytes = Vec::new();
    let read = match given.as_str() {
        "-" => std::io::stdin().lock().take(LARGEST).read_to_end(&mut bytes),
        path => std::fs::File::open(path).and_then(|file| file.take(LARGEST).read_to_end(&mut bytes)),
    };
    read.map_err(|error| Failure::File { path: given.into(), error })?;
    Ok(bytes)
}

/// Returns the word for a verdict, and its detail.
fn verdict(verdict: &Verdict) -> (&'static str, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match verdict {
        Verdict::Pass => ("pass", String::new()),
        Verdict::Modify(message) => ("modify", text(message.bytes())),
        Verdict::Reply(result) => ("reply", text(result)),
        Verdict::Error(error) => ("error", text(error)),
        Verdict::Refuse(fault) => ("refuse", fault.message.clone()),
        Verdict::Hold(hold) => ("hold", question(&hold.question)),
    }
}

/// Describes who decides about a held message.
fn question(question: &HoldQuestion) -> String {
    match question {
        HoldQuestion::Pause(time) => format!("continues after {}", spelled(*time)),
        HoldQuestion::Work(_) => "continues when it was looked at".to_owned(),
        HoldQuestion::Person { reason, within } if reason.is_empty() => {
            format!("a person decides within {}", spelled(*within))
        }
        HoldQuestion::Person { reason, within } => format!("a person decides within {}: {reason}", spelled(*within)),
        HoldQuestion::Consent(consent) => {
            format!("a person has to agree within {}: {}", spelled(consent.within), consent.reason)
        }
        HoldQuestion::Webhook { url, within, .. } => format!("{} decides within {}", shown_url(url), spelled(*within)),
    }
}

/// Strips the query and the fragment of an address, which may hold a secret.
fn shown_url(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

/// Formats a duration as rules spell it.
fn spelled(time: std::time::Duration) -> String {
    format!("{time:?}")
}

fn tried_text(tried: &TrialOutcome) -> String {
    let mut text = String::new();
    for ruling in tried.rulings.iter().filter(|ruling| ruling.rule.is_some()) {
        let rule = ruling.rule.as_deref().unwrap_or_default();
        text.push_str(&format!("{rule}: {} {}\n", ruling.verdict, table::harmless(&ruling.detail)));
        for (condition, held) in ruling.conditions.iter() {
            text.push_str(&format!("    {} {}\n", if *held { "yes" } else { "no " }, table::harmless(condition)));
        }
        for (input, value) in &ruling.inputs {
            text.push_str(&format!("    {input}: {}\n", table::harmless(value)));
        }
    }
    if !tried.waited.is_zero() {
        text.push_str(&format!("waits {}, then continues with the next rules\n", spelled(tried.waited)));
    }
    for effect in &tried.effects {
        text.push_str(&format!("also: {}\n", table::harmless(&besides(effect))));
    }
    let (word, detail) = verdict(&tried.verdict);
    text.push_str(format!("verdict: {word} {}", table::harmless(&detail)).trim_end());
    text.push('\n');
    text
}

fn besides(effect: &Effect) -> String {
    match effect {
        Effect::Fork { backend, .. } => format!("a copy goes to {backend}"),
        Effect::Log { level, text } => format!("log, {}: {text}", level.as_str()),
        Effect::Count { names } => format!("count {}", names.join(", ")),
        Effect::Notify { url, .. } => format!("notifies {url}"),
    }
}

fn tried_json(set: &RuleSet, tried: &TrialOutcome) -> Value {
    let rulings: Vec<Value> = tried
        .rulings
        .iter()
        .map(|ruling| {
            json!({
                "rule": ruling.rule.as_deref(),
                "verdict": ruling.verdict,
                "detail": ruling.detail,
                "conditions": ruling.conditions.iter().map(|(text, held)| (&**text, held)).collect::<Vec<_>>(),
                "inputs": ruling.inputs,
            })
        })
        .collect();
    let (word, detail) = verdict(&tried.verdict);
    let waited_ms = u64::try_from(tried.waited.as_millis()).unwrap_or(u64::MAX);
    let besides: Vec<String> = tried.effects.iter().map(besides).collect();
    json!({
        "rules": set.len(), "verdict": word, "detail": detail, "waited_ms": waited_ms, "rulings": rulings,
        "besides": besides,
    })
}
