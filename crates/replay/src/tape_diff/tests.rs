use super::*;
use crate::Paths;
use bytes::Bytes;
use serde_json::json;
use signalbox_engine::fact::Point;
use signalbox_engine::record::{
    BackendOffer, Body, Content, Entry, FinishedEntry, Gap, MessageEntry, MessageKind, TapeInfo, TapeKind,
};
use signalbox_tape::TapeFileWriter;

const MILLI: u64 = 1_000_000;

/// A tape in the making.
struct Script {
    info: TapeInfo,
    entries: Vec<Entry>,
    calls: u64,
}

impl Script {
    fn new() -> Self {
        let mut info = TapeInfo::new("t".to_owned(), TapeKind::Serve, "x".to_owned(), 1);
        info.sampling = "all".to_owned();
        Self { info, entries: Vec::new(), calls: 0 }
    }

    fn push(&mut self, exchange: Option<u64>, content: Content) {
        let seq = self.entries.len() as u64 + 1;
        let entry = Entry::new(seq, seq * MILLI, "ann".into(), content);
        self.entries.push(Entry { session: exchange.map(|_| 1), exchange, ..entry });
    }

    fn message(&mut self, point: Point, kind: MessageKind, body: &Value, redacted: bool) {
        let bytes = Bytes::from(body.to_string());
        let message = MessageEntry::new(point, kind, bytes.len() as u64, Body::Whole(bytes));
        self.push(Some(self.calls), Content::Message(MessageEntry { redacted, ..message }));
    }

    fn finish(&mut self, tool: &str, outcome: &str, took: u64) {
        let finished = FinishedEntry {
            method: "tools/call".into(),
            subject: Some(tool.into()),
            outcome: outcome.to_owned().into(),
            took: took * MILLI,
            ..FinishedEntry::default()
        };
        self.push(Some(self.calls), Content::Finished(finished));
    }

    /// A call of a tool that is answered with a result.
    fn call(mut self, tool: &str, arguments: Value, result: Value) -> Self {
        self.calls += 1;
        let id = self.calls * 10;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
        self.message(Point::ClientIn, MessageKind::Request, &request, false);
        self.message(
            Point::ClientOut,
            MessageKind::Result,
            &json!({"jsonrpc": "2.0", "id": id, "result": result}),
            false,
        );
        self.finish(tool, "success", 5);
        self
    }

    /// Changes the end of the last call.
    fn ended(mut self, outcome: &str, took: u64) -> Self {
        if let Some(Entry { content: Content::Finished(finished), .. }) = self.entries.last_mut() {
            (finished.outcome, finished.took) = (outcome.to_owned().into(), took * MILLI);
        }
        self
    }

    /// Marks the messages of the last call as redacted.
    fn redacted(mut self) -> Self {
        for entry in self.entries.iter_mut().rev().take(3) {
            if let Content::Message(message) = &mut entry.content {
                message.redacted = true;
            }
        }
        self
    }

    /// Leaves the body of the last answer out.
    fn left(mut self) -> Self {
        let at = self.entries.len() - 2;
        if let Content::Message(message) = &mut self.entries[at].content {
            message.body = Body::Left;
        }
        self
    }

    fn offers(mut self, tools: Value) -> Self {
        let seen = BackendOffer {
            backend: "math".into(),
            view: "sessions".to_owned(),
            hash: tools.to_string(),
            parts: vec![
                ("server".into(), Bytes::from_static(br#"{"name":"math","version":"1"}"#)),
                ("tools".into(), Bytes::from(tools.to_string())),
            ],
            ..BackendOffer::default()
        };
        self.push(None, Content::Backend(Box::new(seen)));
        self
    }

    fn source(&self, folder: &tempfile::TempDir, name: &str) -> TapeSource {
        let path = folder.path().join(name);
        let mut file = TapeFileWriter::new(std::fs::File::create(&path).unwrap(), &self.info, &[]).unwrap();
        self.entries.iter().for_each(|entry| file.push(entry).unwrap());
        file.finish(Some(9)).unwrap();
        TapeSource::open(&path).unwrap()
    }
}

fn settings() -> TapeDiffSettings {
    TapeDiffSettings { limit: 100, ..TapeDiffSettings::default() }
}

fn compared(old: &Script, new: &Script, settings: &TapeDiffSettings) -> TapeDiff {
    let folder = tempfile::tempdir().unwrap();
    let (mut old, mut new) = (old.source(&folder, "old.tape"), new.source(&folder, "new.tape"));
    diff(&mut old, &mut new, settings, None).unwrap()
}

fn told(diff: &TapeDiff) -> Vec<String> {
    let line = |call: &CallChange| {
        let number = |number: Option<u64>| number.map_or("-".to_owned(), |number| number.to_string());
        let mut line = format!("{} {} {}", call.fate.word(), number(call.old), number(call.new));
        for field in &call.fields {
            line.push_str(&format!("; {} {} -> {}", field.pointer, field.recorded, field.new));
        }
        line
    };
    diff.calls.iter().map(line).collect()
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

#[test]
fn a_tape_is_the_same_as_itself_and_ids_do_not_count() {
    let tape = || Script::new().call("echo", json!({"t": 1}), text("1")).call("echo", json!({"t": 1}), text("2"));
    let found = compared(&tape(), &tape(), &settings());
    assert!(found.is_same() && !found.is_breaking(), "{found:?}");
    assert_eq!((found.counts.old, found.counts.new, found.counts.paired), (2, 2, 2));
    let shifted = Script { calls: 7, ..Script::new() }.call("echo", json!({"t": 1}), text("1"));
    let found = compared(&Script::new().call("echo", json!({"t": 1.0}), text("1")), &shifted, &settings());
    assert!(found.is_same(), "{found:?}");
}

#[test]
fn calls_are_paired_and_named_by_field() {
    let old = Script::new().call("a", json!({}), text("x")).call("b", json!({"n": 1}), text("y")).call(
        "c",
        json!({}),
        text("z"),
    );
    let new = Script::new()
        .call("a", json!({}), text("X"))
        .call("new", json!({}), text("n"))
        .call("b", json!({"n": 2}), text("y"))
        .call("c", json!({}), json!({"content": 7}));
    let found = compared(&old, &new, &settings());
    assert_eq!(
        told(&found),
        [
            r#"paired 1 1; /result/content/0/text "x" -> "X""#,
            "rewritten 2 3; /params/arguments/n 1 -> 2",
            "added - 2",
            r#"paired 3 4; /result/content [{"type":"text","text":"z"}] -> 7"#,
        ]
    );
    assert_eq!((found.counts.differing, found.counts.breaking, found.counts.added), (4, 1, 1));
    assert_eq!(found.calls[3].tier, Tier::Breaking);
    let one = TapeDiffSettings { tool: Some("a".to_owned()), ..settings() };
    assert_eq!(compared(&old, &new, &one).counts.differing, 1);
    let none = TapeDiffSettings { methods: vec!["resources/*".to_owned()], ..settings() };
    assert_eq!(compared(&old, &new, &none).counts.old, 0);
    let few = TapeDiffSettings { limit: 1, ..settings() };
    let found = compared(&old, &new, &few);
    assert_eq!((found.calls.len(), found.counts.differing), (1, 4), "the rest is counted");
}

#[test]
fn another_order_is_a_difference_unless_it_is_not() {
    let old = Script::new().call("a", json!({}), text("x")).call("b", json!({}), text("y"));
    let new = Script::new().call("b", json!({}), text("y")).call("a", json!({}), text("x"));
    let found = compared(&old, &new, &settings());
    assert_eq!((found.counts.moved, found.counts.differing, found.is_breaking()), (1, 1, false));
    let any = TapeDiffSettings { any_order: true, ..settings() };
    assert!(compared(&old, &new, &any).is_same());
}

#[test]
fn ignored_paths_count_for_requests_and_answers() {
    let tape = |at: u32| Script::new().call("a", json!({"at": at}), text(&format!("{{\"at\":{at},\"n\":1}}")));
    let ignored = Paths::parse(["/params/arguments/at", "/result/**/@json/at"]).unwrap();
    let comparison = Comparison { ignored, json_in_text: true, ..Comparison::default() };
    assert!(compared(&tape(1), &tape(2), &TapeDiffSettings { comparison, ..settings() }).is_same());
    assert!(!compared(&tape(1), &tape(2), &settings()).is_same());
}

/// A call that is slower by more than 100 ms and twice is named.
/// Proves SO-12.
#[test]
fn outcomes_and_times_are_compared() {
    let old = Script::new()
        .call("a", json!({}), text("x"))
        .ended("success", 50)
        .call("b", json!({}), text("y"))
        .ended("success", 500);
    let new = Script::new()
        .call("a", json!({}), text("x"))
        .ended("success", 400)
        .call("b", json!({}), text("y"))
        .ended("tool_error", 700);
    let found = compared(&old, &new, &settings());
    assert_eq!(found.calls.len(), 1, "times alone are no difference");
    assert_eq!(found.calls[0].outcome, Some(("success".to_owned(), "tool_error".to_owned())));
    assert!(found.is_breaking());
    let tool = found.timings.iter().find(|row| row.subject.as_deref() == Some("a")).unwrap();
    assert_eq!((tool.old.p50, tool.new.p95), (50 * MILLI, 400 * MILLI));
    let timing = Some(TimingBudget { budget: 100 * MILLI, factor: 2.0 });
    let found = compared(&old, &new, &TapeDiffSettings { timing, ..settings() });
    assert_eq!(
        (found.counts.slower, found.calls[0].slower),
        (1, Some((50 * MILLI, 400 * MILLI))),
        "700 is not twice 500"
    );
}

#[test]
fn what_is_not_on_a_tape_is_said_and_not_a_difference() {
    let old = Script::new().call("a", json!({}), text("x")).left();
    let new = Script::new().call("a", json!({}), text("y"));
    let found = compared(&old, &new, &settings());
    assert!(found.is_same());
    assert_eq!(found.counts.not_comparable, 1);

    let mut sampled = Script::new().call("a", json!({}), text("y"));
    sampled.info.sampling = "share 0.1".to_owned();
    sampled.push(None, Content::Gap(Gap { facts: 12, reason: "queue_full".to_owned() }));
    let found = compared(&sampled, &new, &settings());
    assert!(found.notes[0].starts_with("the old tape is sampled (share 0.1)"), "{:?}", found.notes);
    assert!(found.notes[1].starts_with("the old tape has gaps (12 facts)"), "{:?}", found.notes);
}

#[test]
fn one_fact_and_one_call_are_counted_in_the_singular() {
    let new = Script::new().call("a", json!({}), text("y"));
    let mut old = Script::new().call("a", json!({}), text("y"));
    old.entries.remove(0);
    old.push(None, Content::Gap(Gap { facts: 1, reason: "queue_full".to_owned() }));
    let notes = compared(&old, &new, &settings()).notes;
    assert!(notes[0].starts_with("the old tape has gaps (1 fact)"), "{notes:?}");
    let partial = "the old tape has 1 call without its request, which is not compared";
    assert!(notes.iter().any(|note| note == partial), "{notes:?}");
}

#[test]
fn redacted_members_are_counted_wherever_they_stand() {
    let mut old = Script::new();
    old.info.redaction = vec!["key password: remove".to_owned(), "credentials of 100 kinds: hash".to_owned()];
    let old = old.call("login", json!({"user": "u"}), text("by hash:0011223344556677, 1")).redacted();
    let new = Script::new().call("login", json!({"user": "u", "password": "p"}), text("by s3cret, 1"));
    let found = compared(&old, &new, &settings());
    assert!(found.is_same(), "{found:?}");
    assert_eq!(found.counts.masked, 1);
    let new = Script::new().call("login", json!({"user": "u", "password": "p"}), text("by s3cret, 2"));
    assert_eq!(compared(&old, &new, &settings()).counts.differing, 1, "what stands around a mask counts");
}

#[test]
fn offers_are_judged_as_contracts() {
    let tools =
        |kind: &str| json!([{"name": "add", "inputSchema": {"type": "object", "properties": {"a": {"type": kind}}}}]);
    let found = compared(&Script::new().offers(tools("number")), &Script::new().offers(tools("integer")), &settings());
    assert_eq!(found.offers.len(), 1);
    let offer = &found.offers[0];
    assert_eq!((offer.backend.as_deref(), offer.change.subject.as_str()), (Some("math"), "tool add"));
    assert!(found.is_breaking() && !found.is_same());
    let wider = compared(&Script::new().offers(tools("integer")), &Script::new().offers(tools("number")), &settings());
    assert!(!wider.is_breaking() && !wider.is_same());
}

/// A client asked for the tools, and was shown these.
fn listed(names: &[&str]) -> Script {
    let mut script = Script::new();
    script.calls += 1;
    let tools: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    script.message(Point::ClientIn, MessageKind::Request, &json!({"id": 1, "method": "tools/list"}), false);
    script.message(Point::ClientOut, MessageKind::Result, &json!({"id": 1, "result": {"tools": tools}}), false);
    script.push(
        Some(1),
        Content::Finished(FinishedEntry {
            method: "tools/list".into(),
            outcome: "success".into(),
            ..FinishedEntry::default()
        }),
    );
    script
}

/// The backend of a branch is the tape, whatever the backends of its parent are called.
#[test]
fn a_branch_is_compared_with_its_parent_by_what_clients_were_shown() {
    let branch = |names: &[&str], parent: Option<&str>| {
        let mut branch = listed(names).offers(json!([{"name": "a"}]));
        let Some(Entry { content: Content::Backend(seen), .. }) = branch.entries.last_mut() else { unreachable!() };
        seen.backend = "tape".into();
        (branch.info.id, branch.info.parent) = ("child".to_owned(), parent.map(str::to_owned));
        branch
    };
    let parent = listed(&["a"]).offers(json!([{"name": "a"}]));
    let found = compared(&parent, &branch(&["a"], Some("t")), &settings());
    assert!(found.is_same() && !found.is_breaking(), "{found:?}");
    assert!(compared(&branch(&["a"], Some("t")), &parent, &settings()).is_same());
    let fewer = compared(&parent, &branch(&[], Some("t")), &settings());
    assert!(fewer.is_breaking() && fewer.offers[0].change.reason == "the tool was removed", "{fewer:?}");
    let stranger = compared(&parent, &branch(&["a"], None), &settings());
    assert!(stranger.is_breaking(), "another tape without that backend: {stranger:?}");
}

#[test]
fn lists_that_clients_were_shown_stand_in_for_offers() {
    let found = compared(&listed(&["a", "b"]), &listed(&["a"]), &settings());
    assert_eq!(found.offers.len(), 1);
    assert_eq!((&found.offers[0].backend, found.offers[0].change.reason.as_str()), (&None, "the tool was removed"));
    let neither = compared(&Script::new(), &listed(&["a"]), &settings());
    assert!(neither.notes.iter().any(|note| note.contains("not on both tapes")), "{:?}", neither.notes);
}

#[test]
fn many_calls_are_compared_in_time() {
    let tape = |odd: u64| {
        (0..3000).fold(Script::new(), |script, at| {
            let result = if at == 1500 { odd } else { at };
            script.call("t", json!({"at": at % 7}), text(&result.to_string()))
        })
    };
    let found = compared(&tape(0), &tape(1), &settings());
    assert_eq!(told(&found), [r#"paired 1501 1501; /result/content/0/text "0" -> "1""#]);
}
