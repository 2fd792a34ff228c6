//! `signalbox tape show`: the calls of a tape, or one of them.

use super::entry_json::entry_json;
use super::lines::{Line, Lines};
use super::{head, keys, moment, read_tape};
use crate::cli::{Global, ShowArgs};
use crate::failure::Failure;
use crate::output;
use serde_json::{Value, json};
use signalbox_control::table;
use signalbox_engine::record::{ClientEntry, Content, Entry, Gap};
use signalbox_tape::redact::Decryptor;
use signalbox_tape::{TapeSource, explain, marks};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

pub(super) fn run(global: &Global, args: &ShowArgs) -> Result<ExitCode, Failure> {
    let mut source = read_tape(global, &args.tape, "tape show")?;
    let mut decryptor = keys::decryptor(&args.key_file)?;
    if args.follow && matches!(source, TapeSource::File(_)) {
        return Err(Failure::Usage("--follow needs a tape of the store; nothing is added to a file".to_owned()));
    }
    let done = match args.exchange {
        Some(number) => exchange(global, &mut source, number, decryptor.as_mut()),
        None => calls(global, &mut source, args, decryptor.as_mut()),
    };
    keys::tell(decryptor.as_ref());
    done
}

fn exchange(
    global: &Global,
    source: &mut TapeSource,
    number: u64,
    decryptor: Option<&mut Decryptor>,
) -> Result<ExitCode, Failure> {
    let mut entries = source.exchange(number)?;
    if let Some(decryptor) = decryptor {
        entries = entries.into_iter().map(|entry| decryptor.entry(entry)).collect();
    }
    if entries.is_empty() {
        return Err(Failure::Usage(format!(
            "tape {} has no call {number}; see `signalbox tape show`",
            source.info().id
        )));
    }
    if global.json {
        let all: Vec<Value> = entries.iter().map(entry_json).collect();
        output::json(&Value::from(all))?;
    } else {
        output::result(&explain(&entries))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Facts of a tape that are shown besides its calls.
#[derive(Default)]
struct Beside {
    gaps: Vec<Gap>,
    clients: Vec<ClientEntry>,
    backends: Vec<String>,
    /// Hashes of the rules, in the order of their use.
    rules: Vec<String>,
    refused: Vec<(u64, String)>,
    /// Number of messages that the gateway itself sent.
    own: u64,
    lost: BTreeMap<String, u64>,
}

impl Beside {
    fn add(&mut self, entry: &Entry) {
        match &entry.content {
            Content::Gap(gap) => self.gaps.push(gap.clone()),
            Content::Client(client) => keep(&mut self.clients, client.clone()),
            Content::Backend(seen) => {
                let revision = seen.revision.as_deref().unwrap_or("no revision");
                let line = format!("backend {} for {}: {revision}, {}", seen.backend, seen.view, seen.hash);
                keep(&mut self.backends, line);
            }
            Content::Rules(rules) => keep(&mut self.rules, rules.hash.clone()),
            Content::Refused(refused) => keep(&mut self.refused, (entry.at, marks::refused(refused))),
            Content::Lost(lost) => self.lose(&lost.reason),
            Content::Message(message) => {
                self.own += u64::from(message.own);
                message.lost.iter().for_each(|reason| self.lose(reason));
            }
            _ => {}
        }
    }

    /// Counts a lost message by reason: unmatched, late and duplicate answers have different causes.
    fn lose(&mut self, reason: &str) {
        if self.lost.len() < MOST_BESIDE || self.lost.contains_key(reason) {
            *self.lost.entry(reason.to_owned()).or_default() += 1;
        }
    }

    fn text(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        lines.extend(self.clients.iter().map(|one| format!("caller {}: {}", one.number, marks::caller(&one.info))));
        lines.extend(self.backends.iter().cloned());
        lines.extend(self.rules.iter().map(|hash| format!("rules {hash}")));
        lines.extend(self.refused.iter().map(|(at, line)| format!("{} {line}", moment::time_of_day(*at))));
        if self.own > 0 {
            lines.push(format!("the gateway's own messages: {}", self.own));
        }
        if !self.lost.is_empty() {
            let all: u64 = self.lost.values().sum();
            let each: Vec<String> = self.lost.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
            lines.push(format!("messages that did not arrive: {all} ({})", each.join(", ")));
        }
        lines.extend(self.gaps.iter().map(|gap| format!("missing: {} facts ({})", gap.facts, gap.reason)));
        lines.iter().map(|line| format!("{}\n", table::harmless(line))).collect()
    }
}

/// Appends an item, up to [`MOST_BESIDE`].
fn keep<T>(list: &mut Vec<T>, one: T) {
    if list.len() < MOST_BESIDE {
        list.push(one);
    }
}

/// Maximum number of callers, backends, sets of rules and refusals shown one by one.
const MOST_BESIDE: usize = 100;

fn calls(
    global: &Global,
    source: &mut TapeSource,
    args: &ShowArgs,
    mut decryptor: Option<&mut Decryptor>,
) -> Result<ExitCode, Failure> {
    let mut beside = Beside::default();
    let mut lines = Lines::new(args);
    for entry in source.entries(args.session) {
        let entry = decrypted(entry?, &mut decryptor);
        beside.add(&entry);
        lines.add(entry);
    }
    lines.add_open();
    if global.json && !args.follow {
        return as_json(source, &lines.take(), &beside);
    }
    if global.json {
        tell(global, &lines.take())?;
    } else {
        let mut text = about(source)?;
        let rows: Vec<Vec<String>> = lines.take().iter().map(Line::row).collect();
        text.push_str(&table::render(&HEADINGS, &rows));
        text.push_str(&beside.text());
        if lines.left_out() {
            text.push_str(&format!(
                "only the first {} calls are shown; see --tail, --limit and --session\n",
                args.limit
            ));
        }
        output::result(&text)?;
    }
    if args.follow {
        follow(global, source, args, lines, decryptor)?;
    }
    Ok(ExitCode::SUCCESS)
}

const HEADINGS: [&str; 9] = ["CALL", "AT", "WHO", "METHOD", "ABOUT", "BACKEND", "OUTCOME", "TOOK", ""];

fn decrypted(entry: Entry, decryptor: &mut Option<&mut Decryptor>) -> Entry {
    match decryptor {
        Some(decryptor) => decryptor.entry(entry),
        None => entry,
    }
}

/// Shows new entries until the tape ends or the reader closes the pipe.
fn follow(
    global: &Global,
    source: &mut TapeSource,
    args: &ShowArgs,
    mut lines: Lines<'_>,
    mut decryptor: Option<&mut Decryptor>,
) -> Result<(), Failure> {
    lines.go_on();
    loop {
        // Check for the end before reading, so that entries written until the end are still read.
        let ended = source.has_ended()?;
        for entry in source.later(args.session, lines.last()) {
            lines.add(decrypted(entry?, &mut decryptor));
        }
        if ended {
            lines.add_open();
        }
        if !tell(global, &lines.take())? || ended {
            return Ok(());
        }
        pause();
    }
}

#[expect(clippy::disallowed_methods, reason = "the command reads a store and nothing else, on its only thread")]
fn pause() {
    std::thread::sleep(LOOK);
}

/// Polling interval for a followed tape.
const LOOK: Duration = Duration::from_millis(300);

/// Writes lines without headings. Returns `false` if the reader has closed the pipe.
fn tell(global: &Global, lines: &[Line]) -> Result<bool, Failure> {
    let text: String = lines
        .iter()
        .map(|line| match global.json {
            true => format!("{}\n", line.json()),
            false => format!("{}\n", table::harmless(line.row().join("  ").trim_end())),
        })
        .collect();
    output::more(global.json, &text)
}

fn about(source: &mut TapeSource) -> Result<String, Failure> {
    let sessions = source.sessions()?;
    let tape = source.info();
    let mut text = format!(
        "tape {} by `signalbox {}` of {}, began {}\n",
        table::harmless(&tape.id),
        tape.kind.command(),
        table::harmless(&tape.target),
        moment::shown(tape.started)
    );
    if let Some(parent) = &tape.parent {
        text.push_str(&format!("a branch of tape {}\n", table::harmless(parent)));
    }
    for (number, session) in sessions.iter().take(MOST_SESSIONS) {
        let line = format!("session {number}: {}", marks::caller(session));
        text.push_str(&table::harmless(&line));
        text.push('\n');
    }
    if sessions.len() > MOST_SESSIONS {
        text.push_str(&format!("and {} more sessions\n", sessions.len() - MOST_SESSIONS));
    }
    text.push('\n');
    Ok(text)
}

/// Maximum number of sessions shown one by one.
const MOST_SESSIONS: usize = 20;

fn as_json(source: &mut TapeSource, calls: &[Line], beside: &Beside) -> Result<ExitCode, Failure> {
    let sessions: Vec<Value> = source
        .sessions()?
        .into_iter()
        .map(|(number, session)| {
            json!({
                "session": number,
                "id": session.external,
                "client": session.client,
                "client_version": session.client_version,
                "revision": session.revision,
                "transport": session.transport,
                "proof": session.proof,
                "claims": session.claims,
                "address": session.address,
            })
        })
        .collect();
    let (open, calls): (Vec<&Line>, Vec<&Line>) = calls.iter().partition(|line| line.is_open());
    let [calls, unfinished] = [calls, open].map(|lines| lines.into_iter().map(Line::json).collect::<Vec<Value>>());
    let gaps: Vec<Value> = beside.gaps.iter().map(|gap| json!({"facts": gap.facts, "reason": gap.reason})).collect();
    let client = |one: &ClientEntry| {
        json!({
            "number": one.number, "client": one.info.client, "client_version": one.info.client_version,
            "revision": one.info.revision, "transport": one.info.transport, "proof": one.info.proof,
            "claims": one.info.claims, "address": one.info.address,
        })
    };
    let clients: Vec<Value> = beside.clients.iter().map(client).collect();
    let refused: Vec<Value> = beside.refused.iter().map(|(at, what)| json!({"at": at, "what": what})).collect();
    let all = json!({
        "tape": head(source.info(), None), "sessions": sessions, "clients": clients, "calls": calls, "unfinished": unfinished,
        "gaps": gaps,
        "rules": beside.rules, "refused": refused, "own": beside.own, "lost": beside.lost.values().sum::<u64>(), "lost_by_reason": beside.lost,
    });
    output::json(&all)?;
    Ok(ExitCode::SUCCESS)
}
