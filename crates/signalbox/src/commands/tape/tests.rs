//! Searches and numbers over a tape, in the store and in a file.

use super::facets::{as_json as facets_json, as_text as facets_text};
use super::last_tape;
use super::named_tape::NamedTape;
use super::search_filter::SearchFilter;
use super::{analysis, stats};
use crate::cli::{EntryType, Global, SearchArgs};
use bytes::Bytes;
use serde_json::{Value, json};
use signalbox_engine::fact::Point;
use signalbox_engine::record::{
    Body, Content, Entry, FinishedEntry, MessageEntry, MessageKind, Query, SessionInfo, TapeInfo, TapeKind, TapeStore,
};
use signalbox_store::SqliteStore;
use signalbox_tape::TapeFileWriter;
use signalbox_tape::analysis::{Analysis, facets_of};
use std::path::Path;

const MILLI: u64 = 1_000_000;

fn info(id: &str) -> TapeInfo {
    TapeInfo::new(id.to_owned(), TapeKind::Serve, "x".to_owned(), 1)
}

/// A tape in the making.
#[derive(Default)]
struct Script {
    entries: Vec<Entry>,
    calls: u64,
}

impl Script {
    fn push(&mut self, session: Option<u64>, exchange: Option<u64>, content: Content) {
        let seq = self.entries.len() as u64 + 1;
        self.entries.push(Entry { session, exchange, ..Entry::new(seq, seq * MILLI, "ann".into(), content) });
    }

    /// A request, its answer, and its end.
    fn call(&mut self, session: Option<u64>, tool: &str, code: Option<i64>, took: u64) {
        self.open(session, tool);
        let kind = if code.is_some() { MessageKind::Error } else { MessageKind::Result };
        let answer = message(kind, tool, code, &format!("{{\"said by\":\"{tool}\"}}"));
        self.push(session, Some(self.calls), Content::Message(answer));
        let outcome = if code.is_some() { "error" } else { "success" };
        let finished = FinishedEntry {
            method: "tools/call".into(),
            subject: Some(tool.into()),
            backend: Some("b".into()),
            outcome: outcome.to_owned().into(),
            took: took * MILLI,
            bytes_in: 10,
            bytes_out: 20,
            ..FinishedEntry::default()
        };
        self.push(session, Some(self.calls), Content::Finished(finished));
    }

    /// A request that is never answered.
    fn open(&mut self, session: Option<u64>, tool: &str) {
        self.calls += 1;
        let asked = message(MessageKind::Request, tool, None, &format!("{{\"asked of\":\"{tool}\"}}"));
        self.push(session, Some(self.calls), Content::Message(asked));
    }
}

fn message(kind: MessageKind, tool: &str, error_code: Option<i64>, body: &str) -> MessageEntry {
    let whole = Body::Whole(Bytes::copy_from_slice(body.as_bytes()));
    MessageEntry {
        method: Some("tools/call".into()),
        subject: Some(tool.into()),
        backend: Some("b".into()),
        error_code,
        ..MessageEntry::new(Point::ClientIn, kind, body.len() as u64, whole)
    }
}

fn keep(store: &dyn TapeStore, id: &str, script: &Script) {
    store.import(&info(id), &mut script.entries.iter().cloned().map(Ok)).unwrap();
}

fn mixed() -> Script {
    let mut script = Script::default();
    let session =
        SessionInfo { client: Some("agent".to_owned()), transport: "stdio".to_owned(), ..SessionInfo::default() };
    script.push(Some(1), None, Content::Session(session));
    for _ in 0..3 {
        script.call(Some(1), "read", None, 5);
        script.call(Some(2), "other", None, 1);
        script.call(Some(1), "write", Some(-32001), 700);
    }
    script.call(None, "read", None, 9);
    let late = message(MessageKind::Result, "read", None, "{}");
    script.push(None, Some(script.calls), Content::Message(late));
    script.open(Some(1), "read");
    script
}

/// `last` is the newest tape with a call, of running ones first.
#[test]
fn last_is_the_newest_tape_with_a_call_and_running_ones_come_first() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("tapes.db")).unwrap();
    let mut called = Script::default();
    called.call(None, "read", None, 1);
    let mut listed = Script::default();
    listed.push(None, None, Content::Session(SessionInfo::default()));
    for (id, started, script) in
        [("running", 10, &called), ("older", 20, &called), ("newer", 30, &called), ("idle", 40, &listed)]
    {
        let tape = TapeInfo { started, ..info(id) };
        store.import(&tape, &mut script.entries.iter().cloned().map(Ok)).unwrap();
    }
    let newest = |running: &[&str]| {
        let running = running.iter().map(|id| (*id).to_owned()).collect();
        last_tape::newest(&store, &running).unwrap().id
    };
    assert_eq!(newest(&[]), "newer", "the newest of all has no call");
    assert_eq!(newest(&["running"]), "running");
    assert_eq!(newest(&["idle"]), "newer", "a running tape without a call says nothing");
}

fn facets(store: &dyn TapeStore, query: Query) -> Value {
    facets_json(&facets_of(store, &query).unwrap())
}

/// What a search matches, by method, tool, backend, principal, outcome and error code.
/// Proves SO-11.
#[test]
fn facets_count_calls_by_what_is_known_of_them_also_where_only_a_message_fits() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("s.db")).unwrap();
    keep(&store, "t", &mixed());
    keep(&store, "u", &mixed());
    let one = || Query { tape: Some("t".to_owned()), ..Query::default() };
    let all = facets(&store, one());
    assert_eq!(all["calls"], 11);
    assert_eq!(all["subjects"]["values"], json!({"read": 5, "other": 3, "write": 3}));
    assert_eq!(all["outcomes"]["values"], json!({"success": 7, "error": 3, "(not over)": 1}));
    assert_eq!(all["error_codes"]["values"], json!({"-32001": 3}));
    assert_eq!(all["principals"]["values"], json!({"ann": 11}));
    assert_eq!(facets(&store, Query::default())["calls"], 22, "all tapes");
    // A word stands in one message, a code in another, and the outcome in neither.
    let word = facets(&store, Query { text: Some("\"asked of\" write".to_owned()), ..one() });
    assert_eq!((&word["calls"], &word["entries"]), (&json!(3), &json!(3)));
    assert_eq!(word["outcomes"]["values"], json!({"error": 3}));
    assert_eq!(word["error_codes"]["values"], json!({"-32001": 3}));
    let code = facets(&store, Query { error_code: Some(-32001), ..one() });
    assert_eq!((&code["calls"], &code["methods"]["values"]), (&json!(3), &json!({"tools/call": 3})));
    let outcome = facets(&store, Query { outcome: Some("success".to_owned()), ..one() });
    assert_eq!(outcome["subjects"]["values"], json!({"read": 4, "other": 3}));
    let few = facets_text(&facets_of(&store, &one()).unwrap(), 1);
    assert!(few.contains("about       read        5") && few.contains("about       (others)    6"), "{few}");
}

/// Many calls that only fit by their text are found in one walk over the tape.
/// Proves SO-11.
#[test]
fn facets_of_many_calls_by_their_text_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("s.db")).unwrap();
    let mut script = Script::default();
    for number in 0..2500 {
        script.call(Some(1), "read", (number % 5 == 0).then_some(-7), 1);
    }
    script.open(Some(1), "read");
    keep(&store, "t", &script);
    let found = facets(&store, Query { text: Some("asked".to_owned()), ..Query::default() });
    assert_eq!((&found["calls"], &found["uncounted"]), (&json!(2501), &json!(0)));
    assert_eq!(found["outcomes"]["values"], json!({"success": 2000, "error": 500, "(not over)": 1}));
    assert_eq!(found["error_codes"]["values"], json!({"-7": 500}));
}

/// Sequences, bottlenecks and anomalies.
/// Proves SO-11.
#[test]
fn an_analysis_tells_pairs_within_a_session_the_slowest_calls_and_what_is_odd_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("s.db")).unwrap();
    let mut script = mixed();
    for number in 0..600 {
        let late = number >= 560;
        script.call(Some(9), "steady", None, 3);
        script.call(Some(9), "tired", None, if late { 90 } else { 3 });
    }
    keep(&store, "t", &script);
    let told = analysis::as_json(&Analysis::of(&store, &[info("t")]).unwrap());
    let pairs = told["pairs"].as_array().unwrap();
    assert_eq!(pairs[0], json!({"first": "steady", "then": "tired", "times": 600}));
    assert!(pairs.contains(&json!({"first": "read", "then": "write", "times": 3})), "{told}");
    assert!(pairs.contains(&json!({"first": "other", "then": "other", "times": 2})), "{told}");
    let slowest = told["slowest"].as_array().unwrap();
    assert_eq!(
        (slowest.len(), &slowest[0]["subject"], &slowest[0]["took_ns"]),
        (10, &json!("write"), &json!(700 * MILLI))
    );
    assert_eq!(slowest[0]["exchange"], 9, "{told}");
    let odd = told["anomalies"].as_array().unwrap();
    assert_eq!((odd.len(), &odd[0]["what"], &odd[0]["measure"]), (1, &json!("tired"), &json!("p95_ns")), "{told}");
    let text = analysis::as_text(&Analysis::of(&store, &[info("t")]).unwrap());
    assert!(text.contains("tired is slower: p95 about "), "{text}");
    assert_eq!(analysis::as_text(&Analysis::default()), "");
}

fn file(folder: &Path, script: &Script) -> String {
    let path = folder.join("x.tape");
    let mut writer = TapeFileWriter::new(std::fs::File::create(&path).unwrap(), &info("in-a-file"), &[]).unwrap();
    script.entries.iter().for_each(|entry| writer.push(entry).unwrap());
    writer.finish(Some(99)).unwrap();
    path.display().to_string()
}

fn nothing_recorded(folder: &Path) -> Global {
    Global { data_dir: Some(folder.to_owned()), json: true, ..Global::default() }
}

/// Messages are found by values of their params and results, by their type, and page by page.
/// Proves SO-11.
#[test]
fn messages_are_found_by_values_and_types_page_by_page() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("tapes.db")).unwrap();
    let mut script = Script::default();
    for number in 1..=6_u64 {
        let path = if number % 2 == 0 { "/etc/hosts" } else { "/tmp/x" };
        let asked = json!({"params": {"name": "read", "arguments": {"path": path, "n": number}}});
        let inner = json!({"ok": number > 3}).to_string();
        let said = json!({"result": {"content": [{"type": "text", "text": inner}], "isError": false}});
        for (kind, body) in [(MessageKind::Request, asked), (MessageKind::Result, said)] {
            script.push(None, Some(number), Content::Message(message(kind, "read", None, &body.to_string())));
        }
    }
    script.call(None, "other", None, 5);
    keep(&store, "t", &script);
    let found = |args: &SearchArgs| -> Vec<u64> {
        let filter = SearchFilter::read(args).unwrap();
        let page = filter.find(&store, &Query::default(), args.page, args.limit).unwrap();
        page.hits.iter().filter_map(|hit| hit.entry.exchange).collect()
    };
    let args = |param: &[&str], result: &[&str]| {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        SearchArgs { param: owned(param), result: owned(result), limit: 50, page: 1, ..SearchArgs::default() }
    };
    assert_eq!(found(&args(&["path=/etc/*"], &[])), [2, 4, 6]);
    assert_eq!(found(&args(&["/arguments/path=/etc/*", "n=4"], &[])), [4], "all of them");
    assert_eq!(found(&args(&[], &["ok=true"])), [4, 5, 6], "through JSON in texts");
    assert_eq!(found(&args(&["path=/etc/*"], &["/content/0/text/@json/ok=true"])), [4, 4, 6, 6], "both in one call");
    assert_eq!(found(&args(&["name=other"], &[])), [0; 0]);
    let of_type = |types: &[EntryType]| found(&SearchArgs { types: types.to_vec(), ..args(&[], &[]) });
    assert_eq!(of_type(&[EntryType::Result]).len(), 7);
    assert_eq!(of_type(&[EntryType::End]), [1]);
    let page = |page: usize| found(&SearchArgs { page, limit: 2, ..args(&["path=*"], &[]) });
    assert_eq!((page(1), page(2), page(3), page(4)), (vec![1, 2], vec![3, 4], vec![5, 6], vec![]));
    assert!(SearchFilter::read(&args(&["path"], &[])).is_err());
}

/// A file answers as the store does, without a store.
/// Proves SO-11.
#[test]
fn a_tape_file_is_searched_and_counted_like_a_stored_tape() {
    let folder = tempfile::tempdir().unwrap();
    let script = mixed();
    let name = file(folder.path(), &script);
    let named = NamedTape::find(&nothing_recorded(folder.path()), Some(&name)).unwrap();
    let tape = named.tape.as_ref().map(|tape| tape.id.clone());
    assert_eq!(tape.as_deref(), Some("in-a-file"));
    assert_eq!(facets(&*named.store, Query { tape: tape.clone(), ..Query::default() })["calls"], 11);
    let numbers = stats::as_json(&named.store.stats(tape.as_deref()).unwrap());
    assert_eq!((&numbers["total"]["calls"], &numbers["total"]["errors"]), (&json!(10), &json!(3)));
    let read = named.store.find(&Query { text: Some("said write".to_owned()), tape, ..Query::default() }).unwrap();
    assert_eq!(read.hits.len(), 3);
    let damaged = folder.path().join("no.tape");
    std::fs::write(&damaged, "x").unwrap();
    assert!(NamedTape::find(&nothing_recorded(folder.path()), Some(damaged.to_str().unwrap())).is_err());
}
