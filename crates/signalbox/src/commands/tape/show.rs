//! `signalbox tape show`: the calls of a tape, or one of them.

use super::entry_json::entry_json;
use super::source::TapeSource;
use super::{head, keys, moment};
use crate::cli::{Global, ShowArgs};
use crate::failure::Failure;
use crate::{output, table};
use serde_json::{Value, json};
use signalbox_engine::record::{Content, Entry, FinishedEntry, Gap};
use signalbox_tape::explain;
use signalbox_tape::redact::Decryptor;
use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::Arc;

/// Does it.
pub(super) fn run(global: &Global, args: &ShowArgs) -> Result<ExitCode, Failure> {
    let mut source = TapeSource::find(global, &args.tape)?;
    let mut decryptor = keys::decryptor(&args.key_file)?;
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
        output::result(&format!("{}\n", Value::from(all)))?;
    } else {
        output::result(&explain(&entries))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// One line of the list.
struct Call {
    entry: Entry,
    finished: FinishedEntry,
    decisions: usize,
}

fn calls(
    global: &Global,
    source: &mut TapeSource,
    args: &ShowArgs,
    mut decryptor: Option<&mut Decryptor>,
) -> Result<ExitCode, Failure> {
    let mut calls = Vec::new();
    let mut decisions: HashMap<u64, usize> = HashMap::new();
    let (mut gaps, mut more) = (Vec::new(), false);
    for entry in source.entries(args.session) {
        let mut entry = match &mut decryptor {
            Some(decryptor) => decryptor.entry(entry?),
            None => entry?,
        };
        match &mut entry.content {
            Content::Decisions(list) => {
                let told = list.iter().filter(|one| one.verdict != "pass" && one.by != "route").count();
                *decisions.entry(entry.exchange.unwrap_or(0)).or_default() += told;
            }
            Content::Gap(gap) => gaps.push(gap.clone()),
            Content::Finished(finished) if calls.len() < args.limit => {
                let finished = finished.clone();
                let decisions = entry.exchange.and_then(|number| decisions.remove(&number)).unwrap_or(0);
                calls.push(Call { entry, finished, decisions });
            }
            Content::Finished(_) => more = true,
            _ => {}
        }
    }
    if global.json {
        return as_json(source, &calls, &gaps);
    }
    let mut text = about(source)?;
    let rows: Vec<Vec<String>> = calls.iter().map(row).collect();
    text.push_str(&table::render(&["CALL", "AT", "WHO", "METHOD", "ABOUT", "BACKEND", "OUTCOME", "TOOK", ""], &rows));
    for gap in gaps {
        text.push_str(&format!("missing: {} facts ({})\n", gap.facts, gap.reason));
    }
    if more {
        text.push_str(&format!("only the first {} calls are shown; see --limit and --session\n", args.limit));
    }
    output::result(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn about(source: &mut TapeSource) -> Result<String, Failure> {
    let sessions = source.sessions()?;
    let tape = source.info();
    let mut text = format!(
        "tape {} by `signalbox {}` of {}, began {}\n",
        tape.id,
        tape.kind.word(),
        table::harmless(&tape.target),
        moment::shown(tape.started)
    );
    for (number, session) in sessions.iter().take(MOST_SESSIONS) {
        let client = session.client.as_deref().unwrap_or("a client that did not say its name");
        let version = session.client_version.as_deref().unwrap_or("");
        let revision = session.revision.as_deref().unwrap_or("no revision");
        let line = format!("session {number}: {client} {version}, {revision}, over {}", session.transport);
        text.push_str(&table::harmless(&line));
        text.push('\n');
    }
    if sessions.len() > MOST_SESSIONS {
        text.push_str(&format!("and {} more sessions\n", sessions.len() - MOST_SESSIONS));
    }
    text.push('\n');
    Ok(text)
}

/// Most sessions that are told one by one.
const MOST_SESSIONS: usize = 20;

fn row(call: &Call) -> Vec<String> {
    let finished = &call.finished;
    let text = |text: &Option<Arc<str>>| text.as_deref().unwrap_or_default().to_owned();
    vec![
        call.entry.exchange.map(|number| number.to_string()).unwrap_or_default(),
        moment::time_of_day(call.entry.at),
        call.entry.principal.to_string(),
        finished.method.to_string(),
        text(&finished.subject),
        text(&finished.backend),
        finished.outcome.to_string(),
        moment::length(finished.took),
        if call.decisions > 0 { format!("{} decided", call.decisions) } else { String::new() },
    ]
}

fn as_json(source: &mut TapeSource, calls: &[Call], gaps: &[Gap]) -> Result<ExitCode, Failure> {
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
            })
        })
        .collect();
    let calls: Vec<Value> = calls.iter().map(|call| entry_json(&call.entry)).collect();
    let gaps: Vec<Value> = gaps.iter().map(|gap| json!({"facts": gap.facts, "reason": gap.reason})).collect();
    let all = json!({"tape": head(source.info(), None), "sessions": sessions, "calls": calls, "gaps": gaps});
    output::result(&format!("{all}\n"))?;
    Ok(ExitCode::SUCCESS)
}
