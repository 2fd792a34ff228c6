//! Dialogues with the tools over a real store.

use super::*;
use signalbox_engine::fact::Point;
use signalbox_engine::record::{
    Body, Content, DecisionEntry, Entry, FinishedEntry, MessageEntry, MessageKind, TapeInfo, TapeKind,
};
use signalbox_store::SqliteStore;
use tempfile::TempDir;
use tokio::sync::mpsc;

/// 2026-11-16, in nanoseconds since 1970.
const BEGAN: u64 = 1_794_787_200_000_000_000;

/// A store with tapes, and what asks about them.
struct Scene {
    folder: TempDir,
    tools: TapeTools,
}

/// The entries of a tape that is being made.
#[derive(Default)]
struct Tape(Vec<Entry>);

impl Tape {
    fn add(&mut self, who: &str, exchange: u64, content: Content) {
        let seq = self.0.len() as u64 + 1;
        let entry = Entry::new(seq, BEGAN + seq * 1_000_000, who.into(), content);
        self.0.push(Entry { exchange: Some(exchange), session: Some(1), ..entry });
    }

    fn message(&mut self, who: &str, exchange: u64, point: Point, tool: &str, text: String) {
        let kind = if point == Point::ClientIn { MessageKind::Request } else { MessageKind::Result };
        let message = MessageEntry::new(point, kind, text.len() as u64, Body::Whole(text.into()));
        let (method, subject) = (Some("tools/call".into()), Some(tool.into()));
        self.add(who, exchange, Content::Message(MessageEntry { method, subject, ..message }));
    }

    /// A call whose answer the gateway changed on its way, as a recorder writes it: the client's image is a difference.
    fn withheld(&mut self, who: &str, exchange: u64, original: &str, sent: &str) {
        let question = json!({"jsonrpc": "2.0", "id": exchange, "method": "tools/call", "params": {"name": "read"}});
        self.message(who, exchange, Point::ClientIn, "read", question.to_string());
        self.message(who, exchange, Point::BackendOut, "read", r#"{"params":{"injected":"outgoing"}}"#.to_owned());
        let result = |text: &str| json!({"id": exchange, "result": {"content": [{"text": text}]}}).to_string();
        let (before, after) = (result(original), result(sent));
        self.message(who, exchange, Point::BackendIn, "read", before.clone());
        let base = self.0.len() as u64;
        let prefix = before.bytes().zip(after.bytes()).take_while(|(one, other)| one == other).count();
        let most = before.len().min(after.len()) - prefix;
        let suffix = before.bytes().rev().zip(after.bytes().rev()).take(most).take_while(|(a, b)| a == b).count();
        let decision = DecisionEntry {
            by: "rules".into(),
            rule: Some("hide".into()),
            phase: "response".into(),
            verdict: "modify".into(),
            detail: format!("grounds {original}"),
            conditions: [(format!("condition {original}").into(), true)].into(),
            inputs: vec![("webhook".into(), format!("input {original}"))],
            ..DecisionEntry::default()
        };
        self.add(who, exchange, Content::Decisions(vec![Arc::new(decision)]));
        self.message(who, exchange, Point::ClientOut, "read", after.clone());
        if let Some(Entry { content: Content::Message(message), .. }) = self.0.last_mut() {
            let middle = Bytes::copy_from_slice(&after.as_bytes()[prefix..after.len() - suffix]);
            message.body = Body::Like { seq: base, prefix: prefix as u64, suffix: suffix as u64, middle };
        }
        let (method, outcome) = ("tools/call".into(), "success".into());
        let (subject, backend) = (Some("read".into()), Some("files".into()));
        let end = FinishedEntry { method, subject, backend, outcome, ..FinishedEntry::default() };
        self.add(who, exchange, Content::Finished(end));
    }

    /// A call of a tool of this backend that took so many milliseconds.
    fn call(
        &mut self,
        who: &str,
        exchange: u64,
        (backend, tool): (&str, &str),
        arguments: Value,
        answer: &str,
        took: u64,
    ) {
        let params = json!({"name": tool, "arguments": arguments});
        let request = json!({"jsonrpc": "2.0", "id": exchange, "method": "tools/call", "params": params});
        self.message(who, exchange, Point::ClientIn, tool, request.to_string());
        let rule =
            DecisionEntry { by: "rules".into(), verdict: "log".into(), detail: "seen".into(), ..Default::default() };
        self.add(who, exchange, Content::Decisions(vec![Arc::new(rule)]));
        let content = json!([{"type": "text", "text": answer}]);
        let result = json!({"jsonrpc": "2.0", "id": exchange, "result": {"content": content}});
        self.message(who, exchange, Point::ClientOut, tool, result.to_string());
        let outcome = if answer == "no" { "tool_error" } else { "success" };
        self.add(
            who,
            exchange,
            Content::Finished(FinishedEntry {
                method: "tools/call".into(),
                subject: Some(tool.into()),
                backend: Some(backend.into()),
                outcome: outcome.into(),
                took: took * 1_000_000,
                ..FinishedEntry::default()
            }),
        );
    }
}

impl Scene {
    fn new(tapes: Vec<(&str, Tape)>) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("tapes.db");
        let store = SqliteStore::open(&path).unwrap();
        for (at, (name, tape)) in tapes.into_iter().enumerate() {
            let info = TapeInfo::new(name.to_owned(), TapeKind::Serve, "test".to_owned(), BEGAN + at as u64);
            store.import(&info, &mut tape.0.into_iter().map(Ok)).unwrap();
        }
        drop(store);
        let tools = TapeTools::new("tapes", Box::new(move || Ok(Arc::new(SqliteStore::open(&path)?))));
        Self { folder, tools }
    }

    /// Two callers with three calls each, and one of these tools.
    fn usual() -> Self {
        let mut tape = Tape::default();
        for (n, who) in [(1, "ann"), (2, "bob"), (3, "ann"), (4, "bob"), (5, "ann"), (6, "bob")] {
            tape.call(who, n, ("math", "add"), json!({"a": n}), &format!("sum{n} of {who} \u{1b}[31m"), n * 10);
        }
        tape.call("ann", 7, ("tapes", "tapes_search"), json!({"text": "sum1"}), "sum1 was found", 1);
        tape.call("ann", 8, ("files", "read"), json!({"path": "/x"}), "no", 500);
        Self::new(vec![("aaaa-1", tape)])
    }

    async fn raw(&self, who: &str, tool: &str, arguments: Value) -> Value {
        let (to, incoming) = mpsc::channel(4);
        let (outgoing, mut from) = mpsc::channel(4);
        let serving = tokio::spawn(self.tools.clone().serve(Principal::named(who), incoming, outgoing));
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        to.send(Bytes::from(call.to_string())).await.unwrap();
        let answer = from.recv().await.unwrap();
        drop(to);
        serving.await.unwrap();
        serde_json::from_slice(&answer).unwrap()
    }

    async fn ask(&self, who: &str, tool: &str, arguments: Value) -> Value {
        let mut answer = self.raw(who, tool, arguments).await;
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        answer["result"]["structuredContent"].take()
    }

    async fn refusal(&self, who: &str, tool: &str, arguments: Value) -> String {
        let answer = self.raw(who, tool, arguments).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }
}

fn exchanges(found: &Value) -> Vec<u64> {
    found["calls"].as_array().unwrap().iter().map(|call| call["exchange"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn a_caller_finds_its_own_calls_only_and_none_of_these_tools() {
    let scene = Scene::usual();
    assert_eq!(exchanges(&scene.ask("ann", "tapes_search", json!({})).await), [8, 5, 3, 1]);
    assert_eq!(exchanges(&scene.ask("bob", "tapes_search", json!({})).await), [6, 4, 2]);
    assert_eq!(exchanges(&scene.ask("eve", "tapes_search", json!({})).await), [] as [u64; 0]);
    assert_eq!(exchanges(&scene.ask("ann", "tapes_search", json!({"text": "sum1"})).await), [1]);
    assert_eq!(exchanges(&scene.ask("ann", "tapes_search", json!({"text": "sum2"})).await), [] as [u64; 0]);
    let call = |exchange: u64| json!({"tape": "aaaa-1", "exchange": exchange});
    let hidden = scene.refusal("ann", "tapes_show", call(2)).await;
    let absent = scene.refusal("ann", "tapes_show", call(99)).await;
    assert_eq!(hidden.replace(" 2 ", " 99 "), absent, "a call of somebody else is like one that does not exist");
    let both = json!({"first": call(1), "second": call(2)});
    assert!(scene.refusal("ann", "tapes_diff", both).await.contains("you have no call 2"), "nor can it be compared");
    let counted = scene.ask("bob", "tapes_stats", json!({})).await;
    assert_eq!((&counted["total"]["calls"], &counted["tapes"][0]["calls"]), (&json!(3), &json!(3)));
    assert_eq!(scene.ask("eve", "tapes_stats", json!({})).await["tapes"], json!([]), "not even the names of tapes");
}

#[tokio::test]
async fn calls_are_narrowed_by_their_properties() {
    let scene = Scene::usual();
    for (arguments, expected) in [
        (json!({"tool": "read"}), &[8][..]),
        (json!({"backend": "math"}), &[5, 3, 1]),
        (json!({"text": "sum3", "backend": "math"}), &[3]),
        (json!({"text": "sum3", "backend": "files"}), &[]),
        (json!({"outcome": "tool_error"}), &[8]),
        (json!({"slower_than_ms": 45}), &[8, 5]),
        (json!({"method": "tools/*", "since": "2026-11-16", "until": "2026-11-17"}), &[8, 5, 3, 1]),
        (json!({"until": "2026-11-15"}), &[]),
        (json!({"tape": "aaaa-1", "text": "add", "limit": 2}), &[5, 3]),
    ] {
        assert_eq!(exchanges(&scene.ask("ann", "tapes_search", arguments.clone()).await), expected, "{arguments}");
    }
}

#[tokio::test]
async fn pages_follow_each_other_without_a_gap_or_a_repetition() {
    let scene = Scene::usual();
    // Both messages of a call hold the text of the second search.
    for arguments in [json!({"limit": 1}), json!({"limit": 1, "text": "jsonrpc"})] {
        let (mut all, mut cursor) = (Vec::new(), None::<Value>);
        loop {
            let mut arguments = arguments.clone();
            if let Some(cursor) = cursor.take() {
                arguments["cursor"] = cursor;
            }
            let page = scene.ask("ann", "tapes_search", arguments).await;
            all.extend(exchanges(&page));
            match page.get("next_cursor") {
                Some(next) => cursor = Some(next.clone()),
                None => break,
            }
        }
        assert_eq!(all, [8, 5, 3, 1], "{arguments}");
    }
    let other = scene.refusal("ann", "tapes_search", json!({"cursor": "bbbb:3"})).await;
    assert!(other.contains("no tape `bbbb`"), "{other}");
}

#[tokio::test]
async fn a_call_is_shown_whole_and_safely() {
    let scene = Scene::usual();
    let answer = scene.raw("ann", "tapes_show", json!({"tape": "aaaa-1", "exchange": 3})).await;
    let shown = &answer["result"]["structuredContent"];
    assert_eq!(
        (&shown["subject"], &shown["outcome"], &shown["took_ms"]),
        (&json!("add"), &json!("success"), &json!(30.0))
    );
    assert!(shown["request"]["text"].as_str().unwrap().contains(r#""arguments":{"a":3}"#), "{shown}");
    assert!(shown["answer"]["text"].as_str().unwrap().contains("sum3 of ann"), "{shown}");
    assert_eq!(shown["decisions"][0]["verdict"], "log");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("rules decided about the") && text.contains("Outcome: success after 30.000 ms"), "{text}");
    for safe in [text, shown["answer"]["text"].as_str().unwrap()] {
        assert!(!safe.contains('\u{1b}'), "{safe}");
    }
}

/// A redaction, a replaced result and a block, through every tool.
#[tokio::test]
async fn a_caller_reads_what_it_was_sent_and_nothing_that_was_withheld_from_it() {
    let mut tape = Tape::default();
    tape.withheld("ann", 1, "card 4111secret1111 of Paris", "card **** of Paris");
    tape.withheld("ann", 2, "card 4111secret1111 of Paris", "nothing to see in London");
    tape.withheld("ann", 3, "plain weather of Oslo", "plain weather of Oslo");
    let scene = Scene::new(vec![("aaaa-1", tape)]);
    let call = |exchange: u64| json!({"tape": "aaaa-1", "exchange": exchange});
    for withheld in ["4111secret1111", "grounds", "condition", "injected", "outgoing", "card 4111secret1111"] {
        let found = scene.raw("ann", "tapes_search", json!({"text": withheld})).await;
        assert_eq!(found["result"]["structuredContent"]["calls"], json!([]), "{withheld}: {found}");
        for exchange in 1..=3 {
            let shown = scene.raw("ann", "tapes_show", call(exchange)).await.to_string();
            assert!(!shown.contains(withheld), "{withheld}: {shown}");
            let both = json!({"first": call(exchange), "second": call(3)});
            let diff = scene.raw("ann", "tapes_diff", both).await.to_string();
            assert!(!diff.contains(withheld), "{withheld}: {diff}");
        }
    }
    for (text, expected) in [("paris", &[1][..]), ("london", &[2]), ("card", &[1]), ("weather oslo", &[3])] {
        let found = scene.ask("ann", "tapes_search", json!({"text": text})).await;
        assert_eq!(exchanges(&found), expected, "{text}");
        assert!(!found.to_string().contains("secret"), "{found}");
    }
    let shown = scene.ask("ann", "tapes_show", call(1)).await;
    assert!(shown["answer"]["text"].as_str().unwrap().contains("card **** of Paris"), "{shown}");
    assert_eq!(
        shown["decisions"],
        json!([{"by": "rules", "rule": "hide", "phase": "response", "verdict": "modify"}]),
        "who decided what, and not on what grounds"
    );
    let told = shown["explanation"].as_str().unwrap();
    assert!(!told.contains("backend to gateway") && !told.contains("never reached"), "{told}");
}

#[tokio::test]
async fn long_messages_are_cut() {
    let mut tape = Tape::default();
    tape.call("ann", 1, ("files", "read"), json!({}), &"x".repeat(200_000), 1);
    let scene = Scene::new(vec![("aaaa-1", tape)]);
    let answer = scene.raw("ann", "tapes_show", json!({"tape": "aaaa-1", "exchange": 1})).await;
    assert!(answer.to_string().len() < 60_000, "{}", answer.to_string().len());
    let text = answer["result"]["structuredContent"]["answer"]["text"].as_str().unwrap();
    assert!(text.ends_with("more characters)"));
}

#[tokio::test]
async fn numbers_are_those_of_arithmetic() {
    let scene = Scene::usual();
    let stats = scene.ask("ann", "tapes_stats", json!({})).await;
    let total = &stats["total"];
    assert_eq!((&total["calls"], &total["errors"]), (&json!(4), &json!(1)));
    let times = ["p50_ms", "p95_ms", "p99_ms"].map(|name| total[name].as_f64().unwrap());
    assert_eq!(times, [30.0, 500.0, 500.0]);
    let tools: Vec<(&str, u64)> = stats["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| (line["name"].as_str().unwrap(), line["calls"].as_u64().unwrap()))
        .collect();
    assert_eq!(tools, [("add", 3), ("read", 1)], "the calls of these tools are not counted");
    assert_eq!((&stats["tapes"][0]["name"], &stats["complete"]), (&json!("aaaa-1"), &json!(true)));
    let one = scene.ask("ann", "tapes_stats", json!({"tool": "read"})).await;
    assert_eq!(one["total"]["calls"], 1);
}

#[tokio::test]
async fn two_calls_are_compared_and_a_tool_across_tapes() {
    let (mut old, mut new) = (Tape::default(), Tape::default());
    old.call("ann", 1, ("math", "add"), json!({"a": 1}), "3", 10);
    old.call("ann", 2, ("math", "add"), json!({"a": 2}), "4", 10);
    new.call("ann", 5, ("math", "add"), json!({"a": 1}), "33", 20);
    new.call("ann", 6, ("math", "add"), json!({"a": 9}), "9", 20);
    let scene = Scene::new(vec![("aaaa-1", old), ("bbbb-2", new)]);
    let call = |tape: &str, exchange: u64| json!({"tape": tape, "exchange": exchange});
    let same = scene.ask("ann", "tapes_diff", json!({"first": call("aaaa-1", 1), "second": call("aaaa-1", 1)})).await;
    assert_eq!((&same["request"]["same"], &same["answer"]["same"]), (&json!(true), &json!(true)));
    let tool = json!({"tool": "add", "first_tape": "aaaa-1", "second_tape": "bbbb-2"});
    let diff = scene.ask("ann", "tapes_diff", tool.clone()).await;
    assert_eq!((&diff["first"]["exchange"], &diff["second"]["exchange"]), (&json!(1), &json!(5)), "equal arguments");
    let found = &diff["answer"]["differences"][0];
    assert_eq!(found["pointer"], "/result/content/0/text");
    assert_eq!((&found["first"], &found["second"]), (&json!("\"3\""), &json!("\"33\"")));
    let mut ignoring = tool;
    ignoring["ignore"] = json!(["/result/content"]);
    assert_eq!(scene.ask("ann", "tapes_diff", ignoring).await["answer"]["same"], true);
    let none = json!({"tool": "sub", "first_tape": "aaaa-1", "second_tape": "bbbb-2"});
    assert!(scene.refusal("ann", "tapes_diff", none).await.contains("you have no call of `sub`"));
}

#[tokio::test]
async fn bad_arguments_and_a_store_that_cannot_be_opened_are_explained() {
    let scene = Scene::usual();
    for (tool, arguments, says) in [
        ("tapes_search", json!({"since": "yesterday"}), "`since`: `yesterday` is not a valid time"),
        ("tapes_search", json!({"limit": 1000}), "`limit` must be a whole number from 1 to 100"),
        ("tapes_search", json!({"principal": "bob"}), "`principal` is not an argument"),
        ("tapes_search", json!({"text": "!!"}), "contains no word to search for"),
        ("tapes_show", json!({"tape": "zzzz", "exchange": 1}), "no tape `zzzz`"),
        ("tapes_show", json!({}), "`exchange` must be the number of the call"),
        ("tapes_diff", json!({"tool": "add"}), "give either `first` and `second`"),
        ("tapes_diff", json!({"first": 1}), "`first` must be an object"),
    ] {
        let text = scene.refusal("ann", tool, arguments).await;
        assert!(text.contains(says), "{text}");
    }
    let place = scene.folder.path().display().to_string();
    let why = "it is a folder".to_owned();
    let open = move || Err(StoreError::Open { place: place.clone(), why: why.clone() });
    let closed = Scene { folder: TempDir::new().unwrap(), tools: TapeTools::new("tapes", Box::new(open)) };
    let text = closed.refusal("ann", "tapes_stats", json!({})).await;
    assert!(text.contains("cannot be read: cannot open") && text.contains("it is a folder"), "{text}");
}

#[test]
fn every_tool_is_read_only_and_has_schemas_that_fit_what_it_reads() {
    let tools = catalog::tools();
    let keys = |tool: &Value| -> Vec<String> {
        tool["inputSchema"]["properties"].as_object().unwrap().keys().cloned().collect()
    };
    for (tool, known) in tools.iter().zip([&diff::KEYS[..], &search::KEYS, &show::KEYS, &stats::KEYS]) {
        assert_eq!(tool["annotations"]["readOnlyHint"], true);
        assert_eq!(tool["outputSchema"]["type"], "object");
        assert_eq!(keys(tool), known, "{}", tool["name"]);
    }
}
