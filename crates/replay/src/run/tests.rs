//! Runs against servers of a few lines: orders, retries, pauses and times (SO-12), and what becomes of withheld calls.

use super::*;
use crate::recorded_call::RecordedMessage;
use bytes::Bytes;
use std::sync::Mutex;
use tokio::sync::mpsc;

const MILLISECOND: u64 = 1_000_000;

/// A call of a tool that began so many nanoseconds after 1970 and was answered a millisecond later.
pub(super) fn recorded(number: u64, tool: &str, arguments: &Value, result: &Value, began: u64) -> Arc<RecordedCall> {
    let params = json!({"name": tool, "arguments": arguments});
    let request = json!({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params});
    let answer = json!({"jsonrpc": "2.0", "id": number, "result": result});
    Arc::new(RecordedCall {
        number,
        session: Some(1),
        seq: number * 10,
        last: number * 10 + 1,
        began,
        era: Era::Legacy,
        method: method::TOOLS_CALL.into(),
        subject: Some(tool.into()),
        request: Some(request.to_string().into()),
        key: None,
        steps: Vec::new(),
        answer: Some(RecordedMessage {
            at: began + MILLISECOND,
            bytes: Some(answer.to_string().into()),
            redacted: false,
        }),
        afterwards: Vec::new(),
        redacted: false,
    })
}

fn of_method(call: &RecordedCall, name: &str) -> Arc<RecordedCall> {
    Arc::new(RecordedCall { method: name.into(), subject: None, ..call.clone() })
}

/// Calls of the tools `a`, `b`, `c` and `d`, 10 ms apart, with a list last.
fn four_and_a_list() -> Vec<Arc<RecordedCall>> {
    let call = |(number, tool): (u64, &str)| recorded(number, tool, &json!({}), &json!({}), number * 10 * MILLISECOND);
    let mut calls: Vec<_> = (1..).zip(["a", "b", "c", "d"]).map(call).collect();
    calls.push(of_method(&call((5, "list")), "resources/list"));
    calls
}

/// A server: it gets each request and says what it sends at once.
type Server<'a> = Box<dyn FnMut(&Value) -> Vec<Value> + Send + 'a>;

fn answer(request: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request["id"], "result": result})
}

/// Runs calls against a server, and returns the report and the subjects of the requests as they came.
async fn run(calls: &[Arc<RecordedCall>], settings: &RunSettings, server: Server<'static>) -> (RunReport, Vec<String>) {
    run_slowly(calls, settings, server, |_| 0).await
}

/// The same with a server that waits before it answers, for so many milliseconds by the number of the request.
async fn run_slowly(
    calls: &[Arc<RecordedCall>],
    settings: &RunSettings,
    server: Server<'static>,
    wait: fn(usize) -> u64,
) -> (RunReport, Vec<String>) {
    run_with(calls, Runner::new(settings), server, wait).await
}

/// The same with a given runner.
async fn run_with(
    calls: &[Arc<RecordedCall>],
    mut runner: Runner<'_>,
    mut server: Server<'static>,
    wait: fn(usize) -> u64,
) -> (RunReport, Vec<String>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (to_server, mut from_client) = mpsc::channel::<Bytes>(16);
    let (to_client, from_server) = mpsc::channel::<Bytes>(16);
    let noted = Arc::clone(&seen);
    tokio::spawn(async move {
        let mut count = 0;
        while let Some(bytes) = from_client.recv().await {
            let request: Value = serde_json::from_slice(&bytes).unwrap();
            let said = match request["method"].as_str().unwrap_or_default() {
                method::INITIALIZE => vec![answer(&request, &json!({}))],
                name if name.starts_with("notifications/") => Vec::new(),
                name => {
                    let tool = request["params"]["name"].as_str().filter(|_| name == method::TOOLS_CALL);
                    noted.lock().unwrap().push(tool.unwrap_or(name).to_owned());
                    count += 1;
                    tokio::time::sleep(Duration::from_millis(wait(count))).await;
                    server(&request)
                }
            };
            for message in said {
                // The runner may have given up.
                let _ = to_client.send(message.to_string().into()).await;
            }
        }
    });
    let mut connection = Connection::new(to_server, from_server);
    runner.session(calls, &mut connection).await.unwrap();
    let seen = seen.lock().unwrap().clone();
    (runner.finish().0, seen)
}

fn quick() -> Server<'static> {
    Box::new(|request| vec![answer(request, &json!({}))])
}

fn writing() -> RunSettings {
    RunSettings { allow_writes: true, ..RunSettings::default() }
}

fn words(report: &RunReport) -> Vec<&'static str> {
    report.calls.iter().map(|call| call.verdict.word()).collect()
}

/// The orders in which calls are sent.
/// Proves SO-12.
#[tokio::test]
async fn calls_are_sent_in_the_order_that_is_wanted() {
    let calls = four_and_a_list();
    let sent = async |order: Order| run(&calls, &RunSettings { order, ..writing() }, quick()).await.1;
    assert_eq!(sent(Order::Sequential).await, ["a", "b", "c", "d", "list"]);
    assert_eq!(sent(Order::Priority).await, ["list", "a", "b", "c", "d"]);
    let (one, other) = (sent(Order::Random(1)).await, sent(Order::Random(2)).await);
    assert_eq!(one, sent(Order::Random(1)).await, "the same seed, the same order");
    assert_ne!(one, other);
    let mut sorted = one.clone();
    sorted.sort();
    assert_eq!(sorted, ["a", "b", "c", "d", "list"], "every call once");
}

/// What overlapped in the recording overlaps in a correlated run, and in no other.
/// Proves SO-12.
#[tokio::test]
async fn correlated_calls_overlap_as_recorded() {
    let first = recorded(1, "slow", &json!({}), &json!({"n": 1}), MILLISECOND);
    let first = Arc::new(RecordedCall {
        answer: first.answer.clone().map(|said| RecordedMessage { at: 100 * MILLISECOND, ..said }),
        ..(*first).clone()
    });
    let calls = [first, recorded(2, "quick", &json!({}), &json!({"n": 2}), 2 * MILLISECOND)];
    // The first call is answered when the second has come.
    let server = || -> Server<'static> {
        let mut held: Option<Value> = None;
        Box::new(move |request| match request["params"]["name"].as_str() {
            Some("slow") => {
                held = Some(answer(request, &json!({"n": 1})));
                Vec::new()
            }
            _ => held.take().into_iter().chain([answer(request, &json!({"n": 2}))]).collect(),
        })
    };
    let correlated = RunSettings { order: Order::Correlated, ..writing() };
    assert_eq!(words(&run(&calls, &correlated, server()).await.0), ["same", "same"]);
    let alone = RunSettings { timeout: Duration::from_millis(100), ..writing() };
    assert_eq!(words(&run(&calls, &alone, server()).await.0), ["unanswered", "same"]);
}

/// What follows a call that fails: the next, the end, or the same again.
/// Proves SO-12.
#[tokio::test]
async fn failures_are_passed_stop_the_run_or_are_tried_again() {
    let calls = &four_and_a_list()[..2];
    // Every call of `a` fails but the third.
    let server = || -> Server<'static> {
        let mut tries = 0;
        Box::new(move |request| {
            let fails = request["params"]["name"] == "a" && {
                tries += 1;
                tries < 3
            };
            let error = json!({"code": -32000, "message": "not now"});
            let failed = json!({"jsonrpc": "2.0", "id": request["id"], "error": error});
            vec![if fails { failed } else { answer(request, &json!({})) }]
        })
    };
    let run = async |on_error, tries| run(calls, &RunSettings { on_error, tries, ..writing() }, server()).await;
    let (report, sent) = run(OnError::Continue, 3).await;
    assert_eq!((words(&report), sent.len()), (vec!["different", "same"], 2));
    let (report, sent) = run(OnError::Stop, 3).await;
    assert_eq!((words(&report), sent.len()), (vec!["different", "skipped"], 1));
    let (report, sent) = run(OnError::Retry, 3).await;
    assert_eq!((words(&report), sent.len()), (vec!["same", "same"], 4));
    let (report, sent) = run(OnError::Retry, 2).await;
    assert_eq!((words(&report), sent.len()), (vec!["different", "same"], 3), "no more tries than are allowed");
}

/// A call that takes longer than recorded and allowed is reported; pauses are kept at a chosen speed.
/// Proves SO-12.
#[tokio::test]
async fn times_are_held_against_the_recording() {
    let calls = &four_and_a_list()[..2];
    let timing = async |budget: u64| {
        let settings = RunSettings { timing: Some(Duration::from_millis(budget)), ..writing() };
        words(&run_slowly(calls, &settings, quick(), |_| 60).await.0)
    };
    assert_eq!(
        timing(10).await,
        ["same", "slow"],
        "recorded 1 ms, allowed 10 ms more, took 60 ms; the first is not judged"
    );
    assert_eq!(timing(60_000).await, ["same", "same"]);
    let paced = RunSettings { speed: Some(0.1), ..writing() };
    let began = Instant::now();
    run(calls, &paced, quick()).await;
    assert!(began.elapsed() >= Duration::from_millis(100), "10 ms apart, at a tenth of the speed");
}

/// The first call of a session may open a connection, so that a slow read is measured once more.
#[tokio::test]
async fn the_handshake_behind_the_first_call_does_not_count() {
    let mut calls = four_and_a_list();
    calls.truncate(2);
    let read_only = ["a".to_owned(), "b".to_owned()].into();
    let settings = RunSettings { timing: Some(Duration::from_millis(1200)), read_only, ..RunSettings::default() };
    let first = |count| if count == 1 { 1500 } else { 0 };
    let (report, sent) = run_slowly(&calls, &settings, quick(), first).await;
    assert_eq!(sent, ["a", "a", "b"]);
    assert_eq!(words(&report), ["same", "same"], "{}", report.to_text());
}

/// A write is not repeated to be measured, so that the time of a first one does not count.
#[tokio::test]
async fn the_handshake_behind_a_first_write_does_not_count() {
    let calls = &four_and_a_list()[..2];
    let settings = RunSettings { timing: Some(Duration::from_millis(1200)), ..writing() };
    let words = async |wait: fn(usize) -> u64| {
        let (report, sent) = run_slowly(calls, &settings, quick(), wait).await;
        assert_eq!(sent, ["a", "b"]);
        words(&report)
    };
    assert_eq!(words(|count| if count == 1 { 1500 } else { 0 }).await, ["same", "same"]);
    assert_eq!(words(|count| if count == 2 { 1500 } else { 0 }).await, ["same", "slow"]);
}

/// `--update-timestamps` moves both ends of a span, and an answer that repeats them is the same.
/// Proves S-39.
#[tokio::test]
async fn moved_moments_keep_their_order_in_a_run() {
    let began = 1_794_744_000_000_000_000;
    let span = json!({"from": "2026-11-16T08:00:00Z", "to": "2026-11-16T18:00:00Z"});
    let calls = [
        recorded(1, "add_event", &span, &span, began),
        recorded(2, "list_events", &json!({}), &json!({"events": [span]}), began + MILLISECOND),
    ];
    let kept = Arc::new(Mutex::new(Value::Null));
    let seen = Arc::clone(&kept);
    let server: Server<'static> = Box::new(move |request| {
        let mut event = seen.lock().unwrap();
        let result = match request["params"]["name"].as_str().unwrap() {
            "add_event" => {
                *event = request["params"]["arguments"].clone();
                event.clone()
            }
            _ => json!({"events": [event.clone()]}),
        };
        vec![answer(request, &result)]
    });
    let now = std::time::UNIX_EPOCH + Duration::from_nanos(began) + Duration::from_secs(3 * 86_400);
    let (settings, shift) = (writing(), TimeShift::new(began, now));
    let (report, _) = run_with(&calls, Runner::new(&settings).with(&shift), server, |_| 0).await;
    assert_eq!(*kept.lock().unwrap(), json!({"from": "2026-11-19T08:00:00Z", "to": "2026-11-19T18:00:00Z"}));
    assert_eq!(words(&report), ["same", "same"], "{}", report.to_text());
}

/// A write that may mean another object is withheld, and the reports say why.
#[tokio::test]
async fn reports_say_why_a_write_is_withheld() {
    let list = |items: &[(u64, &str)]| -> Value {
        let items: Vec<Value> = items.iter().map(|(id, title)| json!({"id": id, "title": title})).collect();
        json!({"structuredContent": {"items": items}})
    };
    let then = [(1001, "book"), (1002, "pen")];
    let twins = [(1001, "book"), (1002, "book")];
    let cases: [(&[_], &[_], &str); 6] = [
        (&then, &[(1002, "pen"), (1003, "book")], "is gone from a list whose other ids are as recorded"),
        (&then, &[(1001, "pen"), (1002, "book")], "stands beside other values now, so that it may name another object"),
        (
            &then,
            &[(1001, "lamp"), (1002, "pen")],
            "stands beside other values now, and such a number may be given to another object",
        ),
        (&then, &[(7, "book"), (8, "book")], "may be any of several items of the new answer"),
        (&then, &[(7, "pen")], "came with an item that the new answer does not have"),
        (&twins, &[(7, "book")], "is all that told two recorded items apart"),
    ];
    for (then, now, why) in cases {
        let calls = [
            recorded(1, "list", &json!({}), &list(then), 1),
            recorded(2, "cancel", &json!({"item": 1001}), &json!({}), 2),
        ];
        let shown = list(now);
        let server: Server<'static> = Box::new(move |request| vec![answer(request, &shown)]);
        let settings = RunSettings { read_only: read_only(), ..writing() };
        let (report, sent) = run(&calls, &settings, server).await;
        assert_eq!(sent, ["list"], "{why}");
        let why = format!("`1001` of call 1 {why}");
        let text = report.to_text();
        assert!(text.contains(&format!("✗ call 2: tools/call cancel\n    not sent: {why}\n")), "{text}");
        assert!(text.contains("1 not sent, since it is not clear which object is meant"), "{text}");
        let told = &report.to_json()["calls"][1];
        assert_eq!((&told["verdict"], &told["why"]), (&json!("unclear"), &json!(why)));
        assert_eq!(report.to_json()["passed"], false);
        let lineage = &report.to_json()["lineage"][0];
        assert_eq!(lineage["standing"], "doubtful");
        assert_eq!(format!("`1001` of call 1 {}", lineage["why"].as_str().unwrap()), why);
    }
}

/// A page that the recorded client read and that cannot be read now may have what is meant.
#[tokio::test]
async fn a_write_is_withheld_if_a_page_of_its_list_is_missing() {
    let page = |items: &[(u64, &str)], next: Option<&str>| -> Value {
        let items: Vec<Value> = items.iter().map(|(id, title)| json!({"id": id, "title": title})).collect();
        json!({"structuredContent": {"items": items, "next": next}})
    };
    let calls = [
        recorded(1, "list", &json!({}), &page(&[(1001, "book"), (1002, "pen")], Some("page-b")), 1),
        recorded(2, "list", &json!({"cursor": "page-b"}), &page(&[(1003, "lamp")], None), 2),
        recorded(3, "cancel", &json!({"item": 1001}), &json!({}), 3),
    ];
    let server = |first: Value, second: Value| -> Server<'static> {
        Box::new(move |request| {
            let is_second = request["params"]["arguments"]["cursor"] == "page-b";
            vec![answer(request, if is_second { &second } else { &first })]
        })
    };
    let settings = RunSettings { read_only: read_only(), ..writing() };
    let first = page(&[(1005, "pen"), (1002, "pen")], Some("page-b"));
    let goes_on = server(first.clone(), page(&[(1003, "lamp")], Some("page-c")));
    let (report, sent) = run(&calls, &settings, goes_on).await;
    assert_eq!(sent, ["list", "list"], "{}", report.to_text());
    let why = "`1001` of call 1 may be on a page of its list that was not read";
    assert!(report.to_text().contains(&format!("not sent: {why}\n")), "{}", report.to_text());
    assert_eq!(report.to_json()["calls"][2]["why"], why);
    let moved = server(first, page(&[(1001, "book"), (1003, "lamp")], None));
    let (report, sent) = run(&calls, &settings, moved).await;
    assert_eq!(sent, ["list", "list", "cancel"], "{}", report.to_text());
}

fn note_calls() -> Vec<Arc<RecordedCall>> {
    let note = json!({"note": "n-1a2b"});
    let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    vec![
        recorded(1, "create", &json!({"text": "milk"}), &text("Created n-1a2b."), 1),
        recorded(2, "read", &note, &text("milk"), 2),
        recorded(3, "list", &json!({}), &text("n-1a2b: milk"), 3),
        recorded(4, "delete", &note, &text("Deleted n-1a2b."), 4),
    ]
}

fn read_only() -> HashSet<String> {
    ["read".to_owned(), "list".to_owned()].into()
}

#[tokio::test]
async fn reads_that_depend_on_a_withheld_write_say_so_and_do_not_fail() {
    let empty: Server<'static> = Box::new(|request| vec![answer(request, &json!({"content": []}))]);
    let settings = RunSettings { read_only: read_only(), ..RunSettings::default() };
    let (report, sent) = run(&note_calls(), &settings, empty).await;
    assert_eq!(words(&report), ["from_tape", "depends", "depends", "from_tape"]);
    assert_eq!(sent, ["list"], "the note that would be read does not exist");
    assert!(!report.has_failed());
    let text = report.to_text();
    assert!(text.contains("– call 2: tools/call read\n    not sent: it depends on call 1"), "{text}");
    assert!(text.contains("– call 3: tools/call list\n    it depends on call 1, which was not sent"), "{text}");
    assert_eq!(report.to_json()["calls"][1]["depends_on"], 1);
}

#[tokio::test]
async fn a_difference_that_no_withheld_write_explains_is_a_failure() {
    let other: Server<'static> =
        Box::new(|request| vec![answer(request, &json!({"content": [{"type": "text", "text": "9 pens"}]}))]);
    let mut calls = note_calls();
    calls.truncate(1);
    calls.push(recorded(2, "list", &json!({}), &json!({"content": [{"type": "text", "text": "8 pens"}]}), 2));
    let settings = RunSettings { read_only: read_only(), ..RunSettings::default() };
    assert_eq!(words(&run(&calls, &settings, other).await.0), ["from_tape", "different"]);
}

#[tokio::test]
async fn the_way_of_each_value_is_told() {
    let server: Server<'static> = Box::new(|request| {
        let text = match request["params"]["name"].as_str().unwrap() {
            "create" => "Created n-9f8e.",
            "read" => "milk",
            "list" => "n-9f8e: milk",
            _ => "Deleted n-9f8e.",
        };
        vec![answer(request, &json!({"content": [{"type": "text", "text": text}]}))]
    });
    let (report, _) = run(&note_calls(), &writing(), server).await;
    assert_eq!(words(&report), ["same"; 4], "{}", report.to_text());
    let wanted = "n-1a2b of call 1 (/content/*/text/@line/*#1) is now n-9f8e; wanted by calls 2, 4\n";
    assert_eq!(report.explain(), wanted);
    assert!(report.to_text().ends_with("; 1 value that the server made up was replaced\n"));
}
