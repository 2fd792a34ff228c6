//! Measures how many attacks are found and how many benign texts are mistaken for one.
//!
//! `cargo run --release --example rates -- [--missed] ATTACKS.jsonl… --benign TEXTS.jsonl|FOLDER…`
//!
//! A line of attacks is `{"id", "kind", "position", "text", "tools"?}`, where `tools` are names of tools of other
//! servers. Texts at the position `arguments` have `argument`, whose meaning chooses the filters. A line of benign
//! texts is the same without the need of a kind. Files of a folder are benign results. With `LISTED_POINTS=N` benign
//! texts of N points or more are listed, too, with `LISTED_CREDENTIALS=1` the credentials in benign texts, and
//! `FURTHER_RULES=FILE` tries rules before they are built in.

#![expect(clippy::print_stdout, reason = "a measuring program prints what it measures")]

use serde::Deserialize;
use serde_json::{Value, json};
use signalbox_guard::argument_filters::{FindingRisk, Meanings, examine};
use signalbox_guard::cleaning::{CleaningRules, scan};
use signalbox_guard::instructions::{
    InstructionScorer, InstructionVerdict, NameSet, Score, ScoreContext, TextLocation,
};
use signalbox_guard::privacy::{PrivacyClass, PrivacyClasses, find};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Maximum number of bytes of a file of a folder.
const MAX_FILE: u64 = 2 << 20;
/// Class that is counted for credentials.
const CREDENTIALS: PrivacyClasses = PrivacyClasses::NONE.with(PrivacyClass::Credential);
/// Interrupts made-up credentials in the committed samples, so that scanners of repositories do not report them.
const INTERRUPTION: &str = "{{|}}";
/// Maximum number of ids that are listed per group.
const MAX_LISTED: usize = 400;

#[derive(Deserialize)]
struct Sample {
    #[serde(default)]
    id: Value,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    position: String,
    text: String,
    #[serde(default)]
    tools: Vec<Value>,
    /// The argument that holds the text, with `name`, `description` and `schema`.
    #[serde(default)]
    argument: Value,
}

#[derive(Default)]
struct Tally {
    total: usize,
    found: usize,
    by_cleaning: usize,
}

struct Judgement<'a> {
    score: Score<'a>,
    cleaned: bool,
    /// True if the text holds a credential.
    secret: bool,
    /// Highest risk that a filter sees in an argument.
    risk: Option<FindingRisk>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut attacks, mut benign, mut missed, mut is_benign) = (Vec::new(), Vec::new(), false, false);
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--missed" => missed = true,
            "--benign" => is_benign = true,
            path if is_benign => benign.extend(read(Path::new(path))?),
            path => attacks.extend(read(Path::new(path))?),
        }
    }
    let further = std::env::var_os("FURTHER_RULES").map(std::fs::read_to_string).transpose()?;
    let scorer = InstructionScorer::new(further.as_deref())?;
    report_attacks(&scorer, &attacks, missed);
    report_benign(&scorer, &benign);
    Ok(())
}

fn read(path: &Path) -> Result<Vec<Sample>, Box<dyn std::error::Error>> {
    if path.is_dir() {
        let mut files = Vec::new();
        walk(path, &mut files);
        let sample = |file: &PathBuf| {
            let text = std::fs::read_to_string(file).ok()?;
            Some(Sample {
                id: file.display().to_string().into(),
                text,
                kind: String::new(),
                position: String::new(),
                tools: Vec::new(),
                argument: Value::Null,
            })
        };
        return Ok(files.iter().filter_map(sample).collect());
    }
    let text = std::fs::read_to_string(path)?;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| Ok(serde_json::from_str(line)?)).collect()
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(&entry.path(), files),
            Ok(kind) if kind.is_file() && entry.metadata().is_ok_and(|data| data.len() <= MAX_FILE) => {
                files.push(entry.path())
            }
            _ => {}
        }
    }
}

/// Returns the place that a position names.
fn place(position: &str) -> TextLocation {
    let position = position.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| position.contains(word));
    match () {
        () if has(&["resource", "file", "document"]) => TextLocation::Resource,
        () if has(&[
            "definition",
            "description",
            "schema",
            "tool-name",
            "param",
            "annotation",
            "instructions",
            "title",
        ]) =>
        {
            TextLocation::Definition
        }
        () if has(&["prompt"]) => TextLocation::Prompt,
        () if has(&["question", "elicit", "sampling", "form"]) => TextLocation::Question,
        () if has(&["error"]) => TextLocation::Error,
        () if has(&["log", "progress", "notification"]) => TextLocation::Log,
        () => TextLocation::Result,
    }
}

fn judge<'a>(scorer: &'a InstructionScorer, sample: &Sample) -> Judgement<'a> {
    let name = |tool: &Value| tool.as_str().or_else(|| tool.get("name").and_then(Value::as_str)).map(str::to_owned);
    let names: Vec<String> = sample.tools.iter().filter_map(name).collect();
    let other_tools = NameSet::new(names.iter().map(String::as_str));
    let context = ScoreContext { place: place(&sample.position), own_tools: &|_| false, other_tools: &other_tools };
    Judgement {
        score: scorer.score(&sample.text, &context),
        cleaned: !scan(&sample.text, &CleaningRules::ALL).is_empty(),
        secret: !find(&sample.text.replace(INTERRUPTION, ""), CREDENTIALS).spans.is_empty(),
        risk: filter(sample),
    }
}

/// Filters the text as the argument that holds it.
fn filter(sample: &Sample) -> Option<FindingRisk> {
    let name = sample.argument["name"].as_str()?;
    let mut property = sample.argument["schema"].clone();
    if property["description"].is_null() {
        property["description"] = sample.argument["description"].clone();
    }
    let schema = json!({"type": "object", "properties": {name: property}});
    let findings = examine(&json!({name: sample.text}), &Meanings::new("", &schema));
    findings.iter().map(|finding| finding.risk).max()
}

fn id(sample: &Sample) -> String {
    sample.id.as_str().map_or_else(|| sample.id.to_string(), str::to_owned)
}

fn report_attacks(scorer: &InstructionScorer, attacks: &[Sample], show_missed: bool) {
    let (mut kinds, mut positions) = (BTreeMap::<&str, Tally>::new(), BTreeMap::<&str, Tally>::new());
    let (mut all, mut missed) = (Tally::default(), Vec::new());
    for sample in attacks {
        let judged = judge(scorer, sample);
        let scored = judged.score.verdict >= InstructionVerdict::Suspicious;
        let counts = matches!(sample.kind.as_str(), "unicode" | "terminal" | "markup");
        let secret = sample.kind == "credential" && judged.secret;
        let found = scored || secret || counts && judged.cleaned || judged.risk.is_some();
        for tally in [&mut all, kinds.entry(&sample.kind).or_default(), positions.entry(&sample.position).or_default()]
        {
            tally.total += 1;
            tally.found += usize::from(found);
            tally.by_cleaning += usize::from(found && !scored);
        }
        if !found {
            missed.push((sample, judged));
        }
    }
    for (name, tallies) in [("kind", &kinds), ("position", &positions)] {
        for (value, tally) in tallies {
            print_tally(name, value, tally);
        }
    }
    print_tally("attacks", "all", &all);
    for (sample, judged) in missed.iter().take(if show_missed { MAX_LISTED } else { 0 }) {
        let start: String = sample.text.chars().take(600).collect();
        println!(
            "missed {} {} {} {}: {start:?} {:?}",
            id(sample),
            sample.kind,
            sample.position,
            judged.score.points,
            rules(&judged.score)
        );
    }
}

fn print_tally(name: &str, value: &str, tally: &Tally) {
    let percent = 100.0 * tally.found as f64 / tally.total.max(1) as f64;
    println!(
        "{name:<9} {value:<28} {:>5}/{:<5} {percent:5.1} %  ({} by cleaning alone)",
        tally.found, tally.total, tally.by_cleaning
    );
}

fn report_benign(scorer: &InstructionScorer, texts: &[Sample]) {
    let (mut alarms, mut cleaned, mut secrets, mut bytes) = (Vec::new(), 0_usize, 0_usize, 0_usize);
    let (mut points, mut arguments, mut filtered) = (Vec::new(), 0_usize, 0_usize);
    let shows_credentials = std::env::var_os("LISTED_CREDENTIALS").is_some();
    let listed = std::env::var("LISTED_POINTS").ok().and_then(|text| text.parse().ok()).unwrap_or(u32::MAX);
    for sample in texts {
        let judged = judge(scorer, sample);
        cleaned += usize::from(judged.cleaned);
        secrets += usize::from(judged.secret);
        if judged.secret && shows_credentials {
            list_credentials(sample);
        }
        points.push(judged.score.points);
        arguments += usize::from(!sample.argument.is_null());
        filtered += usize::from(judged.risk.is_some_and(|risk| risk > FindingRisk::Low));
        bytes += sample.text.len();
        if judged.score.verdict >= InstructionVerdict::Suspicious || judged.score.points >= listed {
            alarms.push((sample, judged.score));
        }
    }
    let percent = 100.0 * alarms.len() as f64 / texts.len().max(1) as f64;
    println!(
        "benign    {} false alarms of {} texts, {percent:.2} % ({bytes} bytes; cleaning changes {cleaned}, {secrets} have a credential)",
        alarms.len(),
        texts.len()
    );
    let above = |limit: &u32| points.iter().filter(|points| *points >= limit).count();
    let counts: Vec<String> =
        [20, 25, 30, 35, 40, 45, 50].iter().map(|limit| format!("{limit}: {}", above(limit))).collect();
    println!("benign    {filtered} of {arguments} arguments have a finding of a filter above low risk");
    println!("benign    texts by least points: {}", counts.join(", "));
    alarms.sort_by_key(|(_, score)| std::cmp::Reverse(score.points));
    for (sample, score) in alarms.iter().take(MAX_LISTED) {
        println!("alarm {} {} {:?}", id(sample), score.points, rules(score));
    }
}

/// Prints the credentials of a text, with their kinds.
fn list_credentials(sample: &Sample) {
    let text = sample.text.replace(INTERRUPTION, "");
    for span in find(&text, CREDENTIALS).spans {
        let excerpt: String = text.get(span.range).unwrap_or_default().chars().take(80).collect();
        println!("credential {} {} {excerpt:?}", id(sample), span.placeholder);
    }
}

/// Returns the heaviest signals, for people who tune rules.
fn rules<'a>(score: &'a Score<'_>) -> Vec<(&'a str, u32, &'a str)> {
    let mut rules: Vec<_> =
        score.signals.iter().map(|signal| (signal.rule, signal.weight, signal.excerpt.as_str())).collect();
    rules.sort_by_key(|(_, weight, _)| std::cmp::Reverse(*weight));
    rules.truncate(8);
    rules
}
