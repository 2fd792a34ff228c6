//! `signalbox backtest`: tries rules on recorded tapes.

use super::tape::read_tape;
use super::{load, quiet_logs};
use crate::cli::{BacktestArgs, Global};
use crate::failure::Failure;
use crate::output;
use serde_json::{Value, json};
use signalbox_assembly::guard_backtest::{GuardBacktest, GuardFindings, GuardReport};
use signalbox_config::Overrides;
use signalbox_config::rules::read_file;
use signalbox_control::table;
use signalbox_guard::{Guard, GuardSecrets};
use signalbox_replay::backtest::{Backtest, BacktestExample, BacktestReport, Class, Group};
use signalbox_rules::RuleSet;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) fn run(global: &Global, args: &BacktestArgs) -> Result<ExitCode, Failure> {
    let _logs = quiet_logs(global);
    if args.guard {
        return run_guard(global, args);
    }
    let failing = classes(&args.fail_on)?;
    let mut backtest = Backtest::new(rules(global, args)?, args.examples);
    let started = Instant::now();
    for name in &args.tapes {
        let mut tape = read_tape(global, name, "backtest")?;
        let info = tape.info().clone();
        backtest.tape(&info, &mut tape.entries(None))?;
    }
    let report = backtest.report();
    let text = match global.json {
        true => format!("{}\n", as_json(report)),
        false => as_text(report, started.elapsed()),
    };
    output::in_form(global.json, &text)?;
    let failed = failing.iter().any(|class| report.count(*class) > 0);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Tries the guard. Fails if it would change or stop a call, unless `--fail-on none` is given.
fn run_guard(global: &Global, args: &BacktestArgs) -> Result<ExitCode, Failure> {
    let config = load(global, Overrides::default())?.config;
    let secrets = GuardSecrets { flows: [0; 16], canaries: None };
    let mut backtest = GuardBacktest::new(Guard::new(config.guard, None, secrets));
    for name in &args.tapes {
        let mut tape = read_tape(global, name, "backtest")?;
        let id = tape.info().id.to_string();
        backtest.tape(&id, tape.entries(None))?;
    }
    let report = backtest.report();
    let text = if global.json { format!("{}\n", guard_json(report)) } else { guard_text(report) };
    output::in_form(global.json, &text)?;
    let fails = report.interventions() > 0 && args.fail_on.iter().any(|word| word != "none");
    Ok(if fails { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn guard_text(report: &GuardReport) -> String {
    let mut text = String::new();
    let row = |((verdict, key, tool), found): (&(&str, Arc<str>, String), &GuardFindings)| {
        let examples: Vec<String> =
            found.examples.iter().map(|(tape, exchange)| format!("{tape} {exchange}")).collect();
        vec![
            (*verdict).to_owned(),
            found.count.to_string(),
            key.to_string(),
            table::harmless(tool).to_string(),
            examples.join(", "),
        ]
    };
    let rows: Vec<Vec<String>> = report.findings.iter().map(row).collect();
    if !rows.is_empty() {
        text.push_str(&table::render(&["NOW", "COUNT", "KEY", "TOOL", "EXCHANGES"], &rows));
    }
    if report.redacted > 0 {
        let redacted = output::counted(report.redacted, "call");
        text.push_str(&format!("note: redaction removed a part of {redacted}, which the guard cannot see\n"));
    }
    if report.without_schema > 0 {
        let calls = output::counted(report.without_schema, "call");
        text.push_str(&format!("note: the definitions of {calls} are not on the tapes, so no schema was applied\n"));
    }
    let (calls, acting) = (output::counted(report.calls, "call"), report.interventions());
    text.push_str(&format!("{calls} judged, {acting} findings would change or stop one\n"));
    text
}

fn guard_json(report: &GuardReport) -> Value {
    let row = |((verdict, key, tool), found): (&(&str, Arc<str>, String), &GuardFindings)| {
        let examples: Vec<Value> =
            found.examples.iter().map(|(tape, exchange)| json!({"tape": tape, "exchange": exchange})).collect();
        json!({"now": verdict, "key": &**key, "tool": tool, "count": found.count, "examples": examples})
    };
    json!({"calls": report.calls, "redacted": report.redacted, "without_schema": report.without_schema,
        "interventions": report.interventions(), "findings": report.findings.iter().map(row).collect::<Vec<_>>()})
}

fn rules(global: &Global, args: &BacktestArgs) -> Result<RuleSet, Failure> {
    if args.rules.is_empty() {
        return Ok(RuleSet::clone(&load(global, Overrides::default())?.config.rules.set));
    }
    let mut sets = Vec::new();
    for file in &args.rules {
        sets.push(RuleSet::clone(&read_file(file)?.set));
    }
    RuleSet::merge(sets).map_err(|error| Failure::Usage(error.to_string()))
}

/// Parses `--fail-on`: the classes of differences that make the command fail.
fn classes(words: &[String]) -> Result<Vec<Class>, Failure> {
    let differences = || Class::ALL.into_iter().filter(|class| *class != Class::Same);
    let mut all = Vec::new();
    for word in words {
        match (word.as_str(), Class::of_word(word)) {
            ("any", _) => all.extend(differences()),
            ("none", _) => {}
            (_, Some(class)) if class != Class::Same => all.push(class),
            _ => {
                let known: Vec<&str> = differences().map(Class::word).collect();
                let text = format!("--fail-on: `{word}` is not a class; use {}, any or none", known.join(", "));
                return Err(Failure::Usage(text));
            }
        }
    }
    Ok(all)
}

fn as_text(report: &BacktestReport, took: Duration) -> String {
    let mut text = String::new();
    for tape in &report.tapes {
        let id = table::harmless(&tape.id);
        if let Some(sampling) = &tape.sampling {
            let sampling = table::harmless(sampling);
            text.push_str(&format!(
                "note: tape {id} is a sample ({sampling}): limiters, caches and lists saw calls that are not on it\n"
            ));
        }
        if tape.gaps > 0 {
            let (gaps, missing) = (tape.gaps, tape.missing);
            text.push_str(&format!("note: tape {id} has {gaps} gaps, in which {missing} facts are missing\n"));
        }
    }
    if report.ungrouped > 0 {
        text.push_str(&format!(
            "note: {} differences are only counted, since there are too many kinds\n",
            report.ungrouped
        ));
    }
    let groups: Vec<&Group> = report.groups().collect();
    if !groups.is_empty() {
        let rows: Vec<Vec<String>> = groups.iter().map(|group| row(group)).collect();
        text.push_str(&table::render(&["NOW", "COUNT", "RULE", "TOOL", "OF", "WHY"], &rows));
        text.push_str(&examples(&groups));
    }
    let seconds = took.as_secs_f64().max(1e-9);
    let rate = report.judged as f64 / seconds;
    let counts = Class::ALL.into_iter().map(|class| (class, report.count(class))).filter(|(_, count)| *count > 0);
    let counts: Vec<String> = counts.map(|(class, count)| format!("{count} {}", class.word())).collect();
    text.push_str(&format!(
        "{}, {} judged: {} ({rate:.0} messages/s)\n",
        output::counted(report.calls, "call"),
        output::counted(report.judged, "message"),
        if counts.is_empty() { "none".to_owned() } else { counts.join(", ") },
    ));
    text
}

fn row(group: &Group) -> Vec<String> {
    vec![
        group.class.word().to_owned(),
        group.count.to_string(),
        group.rule.as_deref().unwrap_or("-").to_owned(),
        group.tool.to_string(),
        group.phase.to_owned(),
        group.reason.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
    ]
}

fn examples(groups: &[&Group]) -> String {
    let mut text = String::new();
    for group in groups.iter().filter(|group| !group.examples.is_empty()) {
        let rule = group.rule.as_deref().map(|rule| format!(" by {rule}")).unwrap_or_default();
        text.push_str(&format!(
            "\n{}{}, {}:\n",
            group.class.word(),
            table::harmless(&rule),
            table::harmless(&group.tool)
        ));
        for example in &group.examples {
            let BacktestExample { tape, exchange, caller, arguments, then, now } = example;
            let number = exchange.map_or_else(|| "-".to_owned(), |number| number.to_string());
            let line = format!("  {tape} exchange {number}, {caller}: {arguments}: {then}, now {now}");
            text.push_str(&table::harmless(&line));
            text.push('\n');
        }
    }
    text.push('\n');
    text
}

fn as_json(report: &BacktestReport) -> Value {
    let counts: serde_json::Map<String, Value> =
        Class::ALL.into_iter().map(|class| (class.word().to_owned(), report.count(class).into())).collect();
    let tapes: Vec<Value> = report
        .tapes
        .iter()
        .map(|tape| json!({"id": tape.id, "sampling": tape.sampling, "gaps": tape.gaps, "missing": tape.missing}))
        .collect();
    json!({
        "tapes": tapes,
        "calls": report.calls,
        "judged": report.judged,
        "classes": counts,
        "groups": report.groups().map(group_json).collect::<Vec<_>>(),
        "ungrouped": report.ungrouped,
    })
}

fn group_json(group: &Group) -> Value {
    let example = |one: &BacktestExample| {
        json!({
            "tape": one.tape,
            "exchange": one.exchange,
            "caller": &*one.caller,
            "arguments": one.arguments,
            "then": one.then,
            "now": one.now,
        })
    };
    json!({
        "class": group.class.word(),
        "rule": group.rule.as_deref(),
        "tool": &*group.tool,
        "phase": group.phase,
        "reason": group.reason.as_ref().map(ToString::to_string),
        "count": group.count,
        "examples": group.examples.iter().map(example).collect::<Vec<_>>(),
    })
}
