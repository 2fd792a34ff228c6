//! All that a store shows, as text: tapes, sessions, entries, numbers and some searches. Only what version 1 knew is
//! told.

use signalbox_engine::fact::Point;
use signalbox_engine::record::{Body, Content, DecisionEntry, Entry, MethodStats, Query, Stats, TapeInfo, TapeStore};
use std::fmt::Write;

/// How much of a body is written out.
const LONGEST: usize = 300;

/// Everything.
pub fn all(store: &dyn TapeStore) -> String {
    let mut text = String::new();
    let tapes = store.tapes().unwrap();
    for (info, entries) in &tapes {
        assert_eq!(store.tape(&info.id).unwrap(), *info);
        tape(&mut text, info, *entries);
        for (number, session) in store.sessions(&info.id).unwrap() {
            let told = [&session.external, &session.client, &session.client_version, &session.revision];
            writeln!(text, "  session {number}: {told:?} {:?}", session.transport).unwrap();
        }
        let query = Query { tape: Some(info.id.clone()), limit: Some(10_000), ..Query::default() };
        let page = store.find(&query).unwrap();
        assert!(!page.more && page.hits.iter().all(|hit| hit.tape == info.id));
        page.hits.iter().for_each(|hit| entry(&mut text, &hit.entry));
        stats(&mut text, &info.id, &store.stats(Some(&info.id)).unwrap());
    }
    stats(&mut text, "all tapes", &store.stats(None).unwrap());
    searches(&mut text, store, &tapes[0].0.id);
    text
}

fn tape(text: &mut String, info: &TapeInfo, entries: u64) {
    let kind = info.kind.word();
    writeln!(text, "tape {:?} {kind} {:?} from {} to {:?}", info.id, info.target, info.started, info.ended).unwrap();
    let taken = (&info.redaction, &info.sampling);
    writeln!(text, "  by {:?}, redaction and sampling {taken:?}, {entries} entries", info.program).unwrap();
}

fn entry(text: &mut String, entry: &Entry) {
    write!(text, "  {} at {} ", entry.seq, entry.at).unwrap();
    write!(text, "session {:?} exchange {:?} for {:?}: ", entry.session, entry.exchange, &*entry.principal).unwrap();
    match &entry.content {
        Content::Session(session) => {
            let told = [&session.external, &session.client, &session.client_version, &session.revision];
            write!(text, "session {told:?} {:?}", session.transport).unwrap();
        }
        Content::SessionEnded => text.push_str("session ended"),
        Content::Message(message) => {
            let point = match message.point {
                Point::ClientIn => "from the client",
                Point::BackendOut => "to the backend",
                Point::BackendIn => "from the backend",
                Point::ClientOut => "to the client",
            };
            write!(text, "{} {point} ", message.kind.word()).unwrap();
            write!(text, "{:?} {:?} {:?} ", message.method, message.subject, message.backend).unwrap();
            write!(text, "{:?} {} ", message.error_code, message.length).unwrap();
            match &message.body {
                Body::Left => text.push_str("left"),
                Body::Whole(whole) => body(text, whole),
                Body::Like { .. } => panic!("what a store shows is whole"),
            }
        }
        Content::Decisions(list) => {
            text.push_str("decisions");
            list.iter().for_each(|decided| decision(text, decided));
        }
        Content::Finished(end) => {
            write!(text, "finished {:?} {:?} {:?} ", &*end.method, end.subject, end.backend).unwrap();
            write!(text, "{:?} {} {} {}", &*end.outcome, end.took, end.bytes_in, end.bytes_out).unwrap();
        }
        Content::Gap(gap) => write!(text, "gap {} {:?}", gap.facts, gap.reason).unwrap(),
        later => panic!("version 1 has no {later:?}"),
    }
    text.push('\n');
}

/// A body; of a long one its beginning, and a sum over all of it (FNV-1a).
fn body(text: &mut String, whole: &[u8]) {
    let shown = &whole[..whole.len().min(LONGEST)];
    write!(text, "{}", shown.escape_ascii()).unwrap();
    if shown.len() < whole.len() {
        let sum = whole
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        write!(text, " … {} bytes, {sum:016x}", whole.len()).unwrap();
    }
}

fn decision(text: &mut String, decision: &DecisionEntry) {
    let DecisionEntry { by, rule, phase, verdict, detail, conditions, inputs, .. } = decision;
    write!(text, " | {by:?} {rule:?} {phase:?} {verdict:?} {detail:?} {conditions:?} {inputs:?}").unwrap();
}

fn stats(text: &mut String, of: &str, stats: &Stats) {
    writeln!(text, "numbers of {of}:").unwrap();
    let mut line = |name: &str, numbers: &MethodStats| {
        let MethodStats { count, errors, p50, p95, p99, bytes_in, bytes_out, .. } = numbers;
        writeln!(text, "  {name}: {count} {errors} {p50} {p95} {p99} {bytes_in} {bytes_out}").unwrap();
    };
    line("total", &stats.total);
    stats.methods.iter().for_each(|(name, numbers)| line(&format!("method {name:?}"), numbers));
    stats.tools.iter().for_each(|(name, numbers)| line(&format!("tool {name:?}"), numbers));
    writeln!(text, "  {:?}, gaps {}, bytes {:?}", stats.messages, stats.gaps, stats.bytes).unwrap();
}

fn searches(text: &mut String, store: &dyn TapeStore, newest: &str) {
    let words = |words: &str| Query { text: Some(words.into()), ..Query::default() };
    let none = Query::default;
    let queries = [
        ("a word", words("wetter")),
        ("a word with accents, in capitals", words("GRÜẞE ÅRHUS")),
        ("a phrase", words("\"red fox\"")),
        ("words of a phrase, apart", words("fox red")),
        ("a Han character", words("天")),
        ("what was redacted", words("redacted")),
        ("a word of a large body", words("sediment")),
        ("a word that only a changed image has", words("shouted")),
        ("a number", words("customer_id 4711")),
        ("no such word", words("nowhere")),
        ("a word of the newest tape", Query { tape: Some(newest.into()), ..words("clerk 17") }),
        ("a session", Query { session: Some(2), ..none() }),
        ("an exchange", Query { exchange: Some(3), ..none() }),
        ("methods", Query { methods: vec!["resources/*".into(), "ping".into()], ..none() }),
        ("a tool", Query { subject: Some("weather__wetter".into()), ..none() }),
        ("a backend", Query { backend: Some("büro".into()), ..none() }),
        ("a principal", Query { principal: Some("zoë \\ \0 ann".into()), ..none() }),
        ("an outcome", Query { outcome: Some("timeout".into()), ..none() }),
        ("the good ones", Query { outcome: Some("success".into()), only_ends: true, ..none() }),
        ("an error code", Query { error_code: Some(-32_001), ..none() }),
        ("slow ones", Query { slower_than: Some(1_000_000_000), ..none() }),
        ("a time", Query { since: Some(1_790_000_000_002_000_000), until: Some(1_790_000_000_006_000_000), ..none() }),
        ("a word and a time", Query { since: Some(1_790_000_000_000_000_000), ..words("fox") }),
        ("the newest", Query { newest_first: true, limit: Some(7), ..none() }),
        ("behind a place", Query { tape: Some("20260921T142640-1".into()), after: Some(30), limit: Some(3), ..none() }),
    ];
    for (name, query) in queries {
        let page = store.find(&query).unwrap_or_else(|error| panic!("{name}: {error}"));
        let found: Vec<String> = page.hits.iter().map(|hit| format!("{}:{}", hit.tape, hit.entry.seq)).collect();
        writeln!(text, "search for {name}: {found:?}{}", if page.more { " and more" } else { "" }).unwrap();
    }
}
