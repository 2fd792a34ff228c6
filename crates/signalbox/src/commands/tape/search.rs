//! `signalbox tape search`: finds messages by their text and properties.

use super::entry_json::entry_json;
use super::named_tape::NamedTape;
use super::search_filter::SearchFilter;
use super::{facets, moment, session_id};
use crate::cli::{Global, SearchArgs};
use crate::failure::Failure;
use crate::output;
use serde_json::{Value, json};
use signalbox_assembly::recording::unix_nanos;
use signalbox_control::table;
use signalbox_engine::record::{Body, Content, EntryPage, Hit, Query};
use signalbox_tape::{excerpt, marks};
use std::process::ExitCode;
use std::sync::Arc;

/// Maximum number of characters of a message per line.
const EXCERPT: usize = 120;

pub(super) fn run(global: &Global, args: &SearchArgs) -> Result<ExitCode, Failure> {
    let named = NamedTape::find(global, args.tape.as_deref())?;
    named.note_reading(global, "tape search")?;
    let (tape, session) = match &args.session_id {
        Some(id) => {
            let (tape, session) = session_id::find(global, &named, id)?;
            (Some(tape), Some(session))
        }
        None => (named.tape.as_ref().map(|tape| tape.id.clone()), args.session),
    };
    let now = unix_nanos();
    let when = |text: &Option<String>| -> Result<Option<u64>, Failure> {
        let read = text.as_deref().map(|text| moment::read(text, now)).transpose();
        read.map_err(|error| Failure::Usage(error.to_string()))
    };
    let query = Query {
        text: args.text.clone(),
        tape,
        session,
        exchange: None,
        methods: args.method.clone(),
        subject: args.tool.clone(),
        backend: args.backend.clone(),
        principal: args.principal.clone(),
        outcome: args.outcome.clone(),
        error_code: args.code,
        slower_than: args.slower_than.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
        since: when(&args.since)?,
        until: when(&args.until)?,
        only_ends: false,
        client_side: false,
        after: None,
        limit: Some(args.limit),
        newest_first: !args.oldest_first,
    };
    if args.facets {
        return facets::run(global.json, &*named.store, &query);
    }
    let page = SearchFilter::read(args)?.find(&*named.store, &query, args.page, args.limit)?;
    if global.json { as_json(&page) } else { as_text(&page, args) }
}

fn as_json(page: &EntryPage) -> Result<ExitCode, Failure> {
    let hits: Vec<Value> =
        page.hits.iter().map(|hit| json!({"tape": hit.tape, "entry": entry_json(&hit.entry)})).collect();
    output::json(&json!({"hits": hits, "more": page.more}))?;
    Ok(ExitCode::SUCCESS)
}

fn as_text(page: &EntryPage, args: &SearchArgs) -> Result<ExitCode, Failure> {
    let rows: Vec<Vec<String>> = page.hits.iter().map(|hit| row(hit, args)).collect();
    let mut text = table::render(&["TAPE", "CALL", "AT", "POINT", "METHOD", "ABOUT", "WHAT"], &rows);
    if page.more {
        text.push_str(&format!("there is more; see --limit and --page {}\n", args.page.max(1) + 1));
    }
    output::result(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn row(hit: &Hit, args: &SearchArgs) -> Vec<String> {
    let entry = &hit.entry;
    let none = String::new;
    let (point, method, about, what) = match &entry.content {
        Content::Message(message) => {
            let text = match &message.body {
                Body::Whole(bytes) => excerpt(&String::from_utf8_lossy(bytes), args.text.as_deref(), EXCERPT),
                Body::Like { .. } | Body::Left => format!("{} bytes", message.length),
            };
            let mut point = format!("{} {}", message.point.words(), message.kind.word());
            for (mark, there) in [(", own", message.own), (", lost", message.lost.is_some())] {
                point.push_str(if there { mark } else { "" });
            }
            (point, message.method.clone(), message.subject.clone(), text)
        }
        Content::Finished(finished) => {
            let what = format!("{} after {}", finished.outcome, moment::length(finished.took));
            ("end".to_owned(), Some(finished.method.clone()), finished.subject.clone(), what)
        }
        Content::Decisions(list) => {
            let what = list.iter().map(|one| format!("{}: {} {}", one.by, one.verdict, one.detail).trim().to_owned());
            let rule = list.iter().find_map(|one| one.rule.clone());
            ("decision".to_owned(), None, rule, what.collect::<Vec<_>>().join("; "))
        }
        Content::Session(session) => ("session".to_owned(), None, session.client.as_deref().map(Arc::from), none()),
        Content::SessionEnded => ("session ended".to_owned(), None, None, none()),
        Content::Gap(gap) => ("gap".to_owned(), None, None, format!("{} facts: {}", gap.facts, gap.reason)),
        Content::Client(client) => {
            let name = client.info.client.as_deref().map(Arc::from);
            (format!("caller {}", client.number), None, name, marks::caller(&client.info))
        }
        Content::Backend(seen) => {
            let parts: Vec<&str> = seen.parts.iter().map(|(name, _)| &**name).collect();
            ("backend".to_owned(), None, Some(seen.backend.clone()), format!("offers {}", parts.join(", ")))
        }
        Content::Rules(rules) => ("rules".to_owned(), None, Some(rules.hash.as_str().into()), none()),
        Content::Lost(lost) => (
            "lost".to_owned(),
            None,
            None,
            format!("message {} at {}: {}", lost.number, lost.point.words(), lost.reason),
        ),
        Content::Refused(refused) => {
            ("refused".to_owned(), None, Some(refused.reason.as_ref().into()), marks::refused(refused))
        }
    };
    let text = |name: Option<Arc<str>>| name.as_deref().unwrap_or_default().to_owned();
    let number = entry.exchange.map(|number| number.to_string()).unwrap_or_default();
    let at = moment::shown(entry.at);
    vec![hit.tape.clone(), number, at, point, text(method), text(about), what]
}
