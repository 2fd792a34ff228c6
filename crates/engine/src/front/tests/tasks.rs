//! Dialogues in which a backend of the new era makes a task of a call of an old client, or is asked to.

use super::*;
use crate::bridge::CallProgress;
use std::time::Duration;

const CALL: &str =
    r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"one","_meta":{"progressToken":"p"}}}"#;
const TASK_CALL: &str =
    r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"one","task":{"ttl":5000}}}"#;
const MADE: &str = r#"{"resultType":"task","taskId":"t1","status":"working","createdAt":"c","lastUpdatedAt":"u","ttlMs":60000,"pollIntervalMs":70}"#;
const LOOK: &str = r#"a> {"jsonrpc":"2.0","id":0,"method":"tasks/get","params":{"taskId":"t1"}}"#;
const EXCHANGE: ExchangeId = ExchangeId(2);

fn told(status: &str, more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":9,"result":{{"resultType":"complete","taskId":"t1","status":"{status}","createdAt":"c","lastUpdatedAt":"v","ttlMs":null,"pollIntervalMs":70{more}}}}}"#
    )
}

impl Dialogue {
    fn reaches(&mut self, reach: CallProgress, result: &str) -> Vec<String> {
        let (exchange, call) = self.calls.pop().unwrap();
        let message = envelope(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#));
        self.event(Event::Unfinished { exchange, message, reach, call, backend: Revision::LATEST })
    }

    /// A call that became a task, at the moment of the first look.
    fn polling(revision: &str, capabilities: &str) -> Self {
        let mut dialogue = Self::of(revision, capabilities);
        dialogue.says(CALL);
        assert_eq!(dialogue.reaches(CallProgress::Task, MADE), ["wake after 70ms"]);
        assert_eq!(dialogue.event(Event::Wake { exchange: EXCHANGE, round: None }), [LOOK]);
        dialogue
    }

    fn fails(&mut self, kind: FaultKind) -> Vec<String> {
        let (exchange, _) = self.calls.pop().unwrap();
        self.event(Event::Failed { exchange, fault: Fault::new(kind, "gone") })
    }
}

#[test]
fn a_client_that_knows_no_tasks_waits_with_its_call_until_the_task_is_done() {
    let mut dialogue = Dialogue::polling("2024-11-05", "{}");
    let half = told("working", r#","statusMessage":"half \"way\"""#);
    assert_eq!(
        dialogue.answers(&half),
        [
            r#"~ {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}"#,
            "wake after 70ms"
        ]
    );
    dialogue.event(Event::Wake { exchange: EXCHANGE, round: None });
    assert_eq!(dialogue.answers(&half), ["wake after 70ms"], "the same word is no progress");
    dialogue.event(Event::Wake { exchange: EXCHANGE, round: None });
    assert_eq!(
        dialogue.answers(&told(
            "completed",
            r#","result":{"resultType":"complete","content":[{"type":"audio","data":"","mimeType":"audio/wav"}]}"#
        )),
        [
            r#"< {"jsonrpc":"2.0","id":"c","result":{"content":[{"type":"resource","resource":{"uri":"signalbox:audio/1","mimeType":"audio/wav","blob":""}}]}}"#
        ],
        "the result is fitted to the client's revision"
    );
    assert_eq!(dialogue.machine.in_flight(), 0);
    assert!(dialogue.event(Event::Wake { exchange: EXCHANGE, round: None }).is_empty());
}

#[test]
fn the_pause_between_two_looks_is_bounded() {
    for (named, pause) in [(",\"pollIntervalMs\":0", "50ms"), (",\"pollIntervalMs\":1e12", "30s"), ("", "1s")] {
        let mut dialogue = Dialogue::of("2025-06-18", "{}");
        dialogue.says(CALL);
        let made = format!(r#"{{"resultType":"task","taskId":"t","status":"working","createdAt":"c"{named}}}"#);
        assert_eq!(dialogue.reaches(CallProgress::Task, &made), [format!("wake after {pause}")]);
    }
}

#[test]
fn a_task_that_asks_has_the_client_asked_and_is_told_its_answers() {
    let mut dialogue = Dialogue::polling("2025-11-25", r#"{"elicitation":{}}"#);
    let asks = told(
        "input_required",
        r#","inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"form","message":"?","requestedSchema":{}}}}"#,
    );
    assert_eq!(
        dialogue.answers(&asks),
        [
            r#"- {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"mode":"form","message":"[a] ?","requestedSchema":{},"_meta":{"io.signalbox/backend":"a"}}}"#
        ]
    );
    assert_eq!(
        dialogue.says(r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"x":1}}}"#),
        [
            r#"a> {"jsonrpc":"2.0","id":0,"method":"tasks/update","params":{"taskId":"t1","inputResponses":{"k":{"action":"accept","content":{"x":1}}}}}"#
        ]
    );
    assert_eq!(dialogue.answers(r#"{"jsonrpc":"2.0","id":9,"result":{"resultType":"complete"}}"#), ["wake after 70ms"]);
    dialogue.event(Event::Wake { exchange: EXCHANGE, round: None });
    assert_eq!(dialogue.answers(&asks), ["wake after 70ms"], "a question that was answered is not put again");
    dialogue.event(Event::Wake { exchange: EXCHANGE, round: None });
    let done = dialogue.answers(&told("completed", r#","result":{"content":[]}"#));
    assert_eq!(done, [r#"< {"jsonrpc":"2.0","id":"c","result":{"content":[]}}"#]);
}

#[test]
fn a_client_that_refuses_a_task_s_question_ends_the_task() {
    let mut dialogue = Dialogue::polling("2025-11-25", r#"{"sampling":{}}"#);
    dialogue.answers(&told(
        "input_required",
        r#","inputRequests":{"s":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}}"#,
    ));
    let said = dialogue.says(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}"#);
    assert_eq!(said[0], r#"a>> {"jsonrpc":"2.0","id":0,"method":"tasks/cancel","params":{"taskId":"t1"}}"#);
    assert!(said[1].contains(r#""isError":true"#), "{said:?}");
}

#[test]
fn tasks_that_fail_are_cancelled_or_make_no_sense_end_the_call_with_an_error() {
    for (answer, part) in [
        (told("failed", r#","error":{"code":-5,"message":"broken"}"#), r#""error":{"code":-5,"message":"broken"}"#),
        (told("cancelled", ""), "the task was cancelled"),
        (told("completed", ""), "without its result"),
        (told("completed", r#","result":{"resultType":"input_required"}"#), "not complete"),
        (told("paused", ""), "in an unknown shape"),
        (r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"Unknown task"}}"#.to_owned(), "Unknown task"),
    ] {
        let mut dialogue = Dialogue::polling("2025-03-26", "{}");
        let said = dialogue.answers(&answer);
        assert!(said.last().unwrap().starts_with("< ") && said.last().unwrap().contains(part), "{answer}: {said:?}");
        assert_eq!(dialogue.machine.in_flight(), 0);
    }
}

#[test]
fn a_cancelled_call_cancels_its_task_and_so_does_the_end_of_the_session() {
    const STOP: &str = r#"a>> {"jsonrpc":"2.0","id":0,"method":"tasks/cancel","params":{"taskId":"t1"}}"#;
    let mut dialogue = Dialogue::polling("2025-06-18", "{}");
    let note = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}"#;
    assert_eq!(dialogue.says(note), [STOP, "cancel at a"]);
    let mut dialogue = Dialogue::polling("2025-06-18", "{}");
    assert_eq!(dialogue.event(Event::Close), [STOP, "cancel at a"]);
}

#[test]
fn a_look_that_fails_is_taken_again_but_not_for_ever() {
    let mut dialogue = Dialogue::polling("2025-06-18", "{}");
    for _ in 0..3 {
        assert_eq!(dialogue.fails(FaultKind::BackendDown), ["wake after 70ms"]);
        assert_eq!(dialogue.event(Event::Wake { exchange: EXCHANGE, round: None }), [LOOK]);
    }
    assert!(dialogue.fails(FaultKind::BackendDown)[0].contains("backend_down"));
    let mut dialogue = Dialogue::polling("2025-06-18", "{}");
    assert!(dialogue.fails(FaultKind::BackendGarbage)[0].starts_with("< "));
}

#[test]
fn a_task_that_never_ends_is_given_up() {
    let mut dialogue = Dialogue::polling("2025-06-18", "{}");
    dialogue.answers(&told("working", ""));
    dialogue.now += Duration::from_secs(24 * 3600);
    let said = dialogue.event(Event::Wake { exchange: EXCHANGE, round: None });
    assert!(said[0].contains("tasks/cancel") && said[1].contains("within 24 hours"), "{said:?}");
}

#[test]
fn a_client_that_asks_for_a_task_is_given_the_one_that_the_backend_made() {
    let mut dialogue = Dialogue::of("2025-11-25", "{}");
    dialogue.says(TASK_CALL);
    let task = r#""taskId":"t1","status":"working","createdAt":"c","lastUpdatedAt":"u","ttl":60000,"pollInterval":70"#;
    assert_eq!(
        dialogue.reaches(CallProgress::Task, MADE),
        [format!(r#"< {{"jsonrpc":"2.0","id":"c","result":{{"task":{{{task}}}}}}}"#)]
    );
    let ask =
        |method: &str| format!(r#"{{"jsonrpc":"2.0","id":"g","method":"tasks/{method}","params":{{"taskId":"t1"}}}}"#);
    assert_eq!(dialogue.says(&ask("get")), [LOOK]);
    assert_eq!(
        dialogue.answers(&told("completed", r#","result":{"content":[],"isError":true}"#)),
        [
            r#"< {"jsonrpc":"2.0","id":"g","result":{"taskId":"t1","status":"failed","createdAt":"c","lastUpdatedAt":"v","ttl":null,"pollInterval":70}}"#
        ]
    );
    assert_eq!(dialogue.says(&ask("result")), [LOOK]);
    assert_eq!(dialogue.answers(&told("working", "")), ["wake after 70ms"]);
    assert_eq!(dialogue.event(Event::Wake { exchange: ExchangeId(4), round: None }), [LOOK]);
    assert_eq!(
        dialogue.answers(&told("completed", r#","result":{"content":[],"resultType":"complete"}"#)),
        [
            r#"< {"jsonrpc":"2.0","id":"g","result":{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}}}"#
        ]
    );
    assert!(dialogue.says(&ask("cancel"))[0].contains(r#""method":"tasks/cancel""#));
    assert_eq!(dialogue.answers(r#"{"jsonrpc":"2.0","id":9,"result":{"resultType":"complete"}}"#), [LOOK]);
    assert!(dialogue.answers(&told("cancelled", ""))[0].contains(r#""status":"cancelled""#));
    let unknown = dialogue.says(r#"{"jsonrpc":"2.0","id":"g","method":"tasks/get","params":{"taskId":"t2"}}"#);
    assert!(unknown[0].contains("-32601"), "no backend of this catalog has tasks: {unknown:?}");
}

#[test]
fn a_result_request_that_is_cancelled_leaves_the_task_alone() {
    let mut dialogue = Dialogue::of("2025-11-25", "{}");
    dialogue.says(TASK_CALL);
    dialogue.reaches(CallProgress::Task, MADE);
    dialogue.says(r#"{"jsonrpc":"2.0","id":"r","method":"tasks/result","params":{"taskId":"t1"}}"#);
    let note = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"r"}}"#;
    assert_eq!(dialogue.says(note), ["cancel at a"]);
}

#[test]
fn a_result_that_came_at_once_is_kept_as_a_task_that_is_over() {
    let mut dialogue = Dialogue::of("2025-11-25", "{}");
    dialogue.says(TASK_CALL);
    let task = r#""taskId":"signalbox-1-2","status":"completed","createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","ttl":5000"#;
    assert_eq!(
        dialogue.reaches(CallProgress::Whole, r#"{"resultType":"complete","content":[]}"#),
        [format!(r#"< {{"jsonrpc":"2.0","id":"c","result":{{"task":{{{task}}}}}}}"#)]
    );
    let ask = |method: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":"g","method":"tasks/{method}","params":{{"taskId":"signalbox-1-2"}}}}"#)
    };
    assert_eq!(dialogue.says(&ask("get")), [format!(r#"< {{"jsonrpc":"2.0","id":"g","result":{{{task}}}}}"#)]);
    assert_eq!(
        dialogue.says(&ask("result")),
        [
            r#"< {"jsonrpc":"2.0","id":"g","result":{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"signalbox-1-2"}}}}"#
        ]
    );
    assert!(dialogue.says(&ask("cancel"))[0].contains("-32602"));
    dialogue.now += Duration::from_secs(5);
    assert!(dialogue.says(&ask("get"))[0].contains("error"), "it was to be kept for five seconds");
}

#[test]
fn tasks_are_listed_from_what_the_session_knows_of_them() {
    let mut dialogue = Dialogue::of("2025-11-25", "{}");
    dialogue.catalog = Catalog::new(["a"].map(Arc::from));
    dialogue.catalog.set_view("a", bare(Era::Modern), new_host());
    let list = r#"{"jsonrpc":"2.0","id":"l","method":"tasks/list"}"#;
    assert_eq!(dialogue.says(list), [r#"< {"jsonrpc":"2.0","id":"l","result":{"tasks":[]}}"#]);
    dialogue.says(TASK_CALL);
    dialogue.reaches(CallProgress::Task, MADE);
    dialogue.says(TASK_CALL);
    dialogue.reaches(CallProgress::Whole, r#"{"content":[]}"#);
    let said = dialogue.says(list);
    assert!(said[0].contains(r#"{"tasks":[{"taskId":"t1""#) && said[0].contains("signalbox-1-4"), "{said:?}");
    let unknown = dialogue.says(r#"{"jsonrpc":"2.0","id":"g","method":"tasks/get","params":{"taskId":"t2"}}"#);
    assert!(unknown[0].contains(r#""code":-32602,"message":"Unknown task: t2""#), "{unknown:?}");
    let tools = dialogue.says(r#"{"jsonrpc":"2.0","id":"t","method":"tools/list"}"#);
    assert!(tools[0].contains(r#""execution":{"taskSupport":"optional"}"#), "{tools:?}");
    dialogue =
        Dialogue { machine: FrontMachine::new(SessionKey(2), Caller::anonymous("http"), Mode::Pipe), ..dialogue };
    let greeting = dialogue.says(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#,
    );
    assert!(greeting[0].contains(r#""tasks":{"list":{},"cancel":{}"#), "{greeting:?}");
}

/// A-7: an old backend is not asked what the revision of its client does not have, whichever task is named.
#[test]
fn an_old_client_has_no_updates_of_tasks() {
    let mut dialogue = Dialogue::of("2025-11-25", "{}");
    dialogue.catalog = Catalog::new(["a"].map(Arc::from));
    dialogue.catalog.set_view("a", bare(Era::Legacy), old_host());
    dialogue.says(TASK_CALL);
    dialogue.answers(
        r#"{"jsonrpc":"2.0","id":9,"result":{"task":{"taskId":"t1","status":"working","createdAt":"c","ttl":5000}}}"#,
    );
    let ask = |name: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":"{name}","method":"tasks/{name}","params":{{"taskId":"t1","inputResponses":{{}}}}}}"#
        )
    };
    assert!(dialogue.says(&ask("get"))[0].starts_with("a> "));
    let refused = dialogue.says(&ask("update"));
    assert!(refused[0].contains(r#""code":-32601"#), "{refused:?}");
}

/// A view of a backend of the new era that runs tasks.
fn new_host() -> crate::catalog::View {
    let mut modern = view(ListKind::Tools, &[r#"{"name":"one"}"#]);
    modern.profile = Arc::new(crate::ServerProfile {
        revision: Revision::LATEST,
        capabilities: Bytes::from_static(br#"{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#),
        info: Bytes::from_static(b"{}"),
        instructions: None,
    });
    modern
}

/// A view of an old backend that runs tasks and lists them.
fn old_host() -> crate::catalog::View {
    let mut legacy = view(ListKind::Tools, &[r#"{"name":"one","execution":{"taskSupport":"optional"}}"#]);
    legacy.profile = Arc::new(crate::ServerProfile {
        revision: Revision::LATEST_LEGACY,
        capabilities: Bytes::from_static(
            br#"{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}"#,
        ),
        info: Bytes::from_static(b"{}"),
        instructions: None,
    });
    legacy
}

/// Sessions of several callers at one old backend.
struct Callers {
    dialogue: Dialogue,
    sessions: u64,
}

impl Callers {
    fn new() -> Self {
        let mut dialogue = Dialogue::of("2025-11-25", "{}");
        dialogue.catalog = Catalog::new(["a"].map(Arc::from));
        dialogue.catalog.set_view("a", bare(Era::Legacy), old_host());
        Self { dialogue, sessions: 1 }
    }

    /// Continues with a new session of this caller, restored from an earlier process if `restored`.
    fn session_of(&mut self, name: &str, restored: bool) -> &mut Dialogue {
        self.sessions += 1;
        let caller = Caller::of(Principal::named(name), Proof::ApiKey, "http");
        let mut machine = FrontMachine::new(SessionKey(self.sessions), caller, Mode::Session);
        if restored {
            let client = ClientProfile::new(Revision::LATEST_LEGACY, Bytes::from_static(b"{}"), None);
            machine.restore(Arc::new(client), None);
        }
        self.dialogue.machine = machine;
        if !restored {
            self.dialogue.says(
                r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#,
            );
            self.dialogue.says(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        }
        self.dialogue.event(Event::GeneralStream { stream: STREAM });
        &mut self.dialogue
    }
}

const LIST: &str = r#"{"jsonrpc":"2.0","id":"l","method":"tasks/list"}"#;

impl Dialogue {
    /// Lets the old backend create a task.
    fn makes(&mut self, task: &str) {
        self.says(TASK_CALL);
        self.answers(&format!(
            r#"{{"jsonrpc":"2.0","id":9,"result":{{"task":{{"taskId":"{task}","status":"working","createdAt":"c","ttl":5000}}}}}}"#
        ));
    }

    /// Returns the tasks that the client sees when the backend lists `tasks`.
    fn listed(&mut self, tasks: &str) -> String {
        assert_eq!(self.says(LIST), [format!("a> {LIST}")]);
        let said =
            self.answers(&format!(r#"{{"jsonrpc":"2.0","id":9,"result":{{"tasks":{tasks},"nextCursor":"2"}}}}"#));
        let [said] = &said[..] else { panic!("{said:?}") };
        let said = said.strip_prefix(r#"< {"jsonrpc":"2.0","id":"l","result":{"tasks":"#).expect(said);
        said.strip_suffix(r#","nextCursor":"2"}}"#).expect(said).to_owned()
    }

    /// Returns true if the client hears of a change of this task.
    fn hears_of(&mut self, method: &str, task: &str) -> bool {
        let message = envelope(&format!(
            r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"taskId":{task},"status":"working","createdAt":"c","ttl":5000}}}}"#
        ));
        let said = self.event(Event::Notified { backend: "a".into(), peer: PeerId(1), message, about: None });
        said.iter().any(|said| said.starts_with("- "))
    }

    fn asks_for(&mut self, method: &str, task: &str) -> Vec<String> {
        self.says(&format!(r#"{{"jsonrpc":"2.0","id":"g","method":"{method}","params":{{"taskId":{task}}}}}"#))
    }
}

fn entry(task: &str) -> String {
    format!(r#"{{"taskId":{task},"status":"working","statusMessage":"secret","createdAt":"c","ttl":5000}}"#)
}

/// A-7: a backend that sees only the gateway's credential takes all callers for one.
#[test]
fn tasks_of_other_callers_are_neither_listed_nor_reported() {
    let mut callers = Callers::new();
    callers.session_of("user:ada", false).makes("ada-1");
    let eve = callers.session_of("user:eve", false);
    eve.makes("eve-1");
    let all = ["\"ada-1\"", "\"eve-1\"", "\"elsewhere\"", "[\"ada-1\"]", "7"].map(entry).join(",");
    assert_eq!(eve.listed(&format!("[{all},7,{{}}]")), format!("[{}]", entry("\"eve-1\"")));
    assert_eq!(eve.listed(&format!("[{} , {}]", entry("\"eve-1\""), entry("\"eve-1\""))).matches("eve-1").count(), 2);
    assert_eq!(eve.listed(&format!(r#"{{"0":{}}}"#, entry("\"ada-1\""))), "[]");
    for method in ["notifications/tasks/status", "notifications/tasks"] {
        assert!(eve.hears_of(method, "\"eve-1\""), "{method}");
        for foreign in ["\"ada-1\"", "\"elsewhere\"", "[\"ada-1\"]", "null"] {
            assert!(!eve.hears_of(method, foreign), "{method} {foreign}");
        }
    }
    let ada = callers.session_of("user:ada", false);
    assert_eq!(ada.listed(&format!("[{all}]")), format!("[{}]", entry("\"ada-1\"")), "in another session of hers");
    assert!(ada.hears_of("notifications/tasks/status", "\"ada-1\""));
}

/// A-7: after a restart, the maker of a task is unknown.
#[test]
fn a_task_of_an_earlier_process_is_unknown_where_callers_share_a_credential() {
    let mut callers = Callers::new();
    let eve = callers.session_of("user:eve", true);
    assert_eq!(eve.listed(&format!("[{}]", entry("\"ada-1\""))), "[]");
    assert!(!eve.hears_of("notifications/tasks/status", "\"ada-1\""));
    for task in ["\"ada-1\"", "\"a+ada-1\""] {
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            let said = eve.asks_for(method, task);
            assert!(said[0].contains(r#""code":-32602"#), "{method} {task}: {said:?}");
        }
    }
    let eve = callers.session_of("user:eve", false);
    assert!(eve.asks_for("tasks/get", "\"a+ada-1\"")[0].contains(r#""code":-32602"#));
}

/// A backend that knows each caller by a credential of its own decides which tasks it lists.
#[test]
fn a_backend_that_knows_its_callers_lists_their_tasks_itself() {
    let mut callers = Callers::new();
    callers.dialogue.catalog.set_own_credentials("a", true);
    let eve = callers.session_of("user:eve", true);
    let elsewhere = entry("\"elsewhere\"");
    assert_eq!(eve.listed(&format!("[{elsewhere}]")), format!("[{elsewhere}]"));
    assert!(eve.hears_of("notifications/tasks/status", "\"elsewhere\""));
    assert!(eve.asks_for("tasks/get", "\"elsewhere\"")[0].starts_with("a> "), "perhaps made in an earlier process");
}

/// A-7: a backend may read `["t1"]` as `t1`, which another caller made.
#[test]
fn a_task_id_that_is_no_string_reaches_no_backend() {
    let ids = [r#"{"taskId":["t1"]}"#, r#"{"taskId":[["t1"]]}"#, r#"{"taskId":0}"#, r#"{"taskId":null}"#];
    let ids = ids.into_iter().chain([r#"{"taskId":{"t1":1}}"#, r#"{"taskId":true}"#, "{}"]);
    for params in ids {
        let mut callers = Callers::new();
        callers.session_of("user:ada", false).makes("t1");
        for name in ["user:ada", "user:eve"] {
            for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
                let caller = callers.session_of(name, false);
                let said =
                    caller.says(&format!(r#"{{"jsonrpc":"2.0","id":"g","method":"{method}","params":{params}}}"#));
                let refused = said.len() == 1
                    && said[0].contains(r#""code":-32602,"message":"params.taskId is required, a string""#);
                assert!(refused, "{name} {method} {params}: {said:?}");
            }
        }
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        let params = params.replacen('{', &format!("{{{meta},"), 1).replace(",}", "}");
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let mut dialogue = Dialogue::new(Mode::Stateless);
            dialogue.catalog = Catalog::new(["a"].map(Arc::from));
            dialogue.catalog.set_view("a", bare(Era::Modern), new_host());
            let said = dialogue.says(&format!(r#"{{"jsonrpc":"2.0","id":5,"method":"{method}","params":{params}}}"#));
            let refused =
                said.len() == 1 && said[0].contains(r#""code":-32602,"message":"params.taskId is required, a string""#);
            assert!(refused, "{method} {params}: {said:?}");
        }
    }
    let mut callers = Callers::new();
    let eve = callers.session_of("user:eve", false);
    assert!(eve.asks_for("tasks/get", "\"\"")[0].contains("Unknown task"), "an empty id is that of no task");
}

/// A-7: in the new era a task of an earlier process is followed only by callers who could not be others.
#[test]
fn a_proved_caller_of_the_new_era_asks_only_about_its_own_tasks() {
    let ask = |proof: Proof| {
        let mut dialogue = Dialogue::new(Mode::Stateless);
        let caller = Caller::of(Principal::named("user:eve"), proof, "http");
        dialogue.machine = FrontMachine::new(SessionKey(2), caller, Mode::Stateless);
        dialogue.catalog = Catalog::new(["a"].map(Arc::from));
        dialogue.catalog.set_view("a", bare(Era::Modern), new_host());
        dialogue.says(
            r#"{"jsonrpc":"2.0","id":5,"method":"tasks/get","params":{"taskId":"t1","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
        )
    };
    assert!(ask(Proof::ApiKey)[0].contains("Unknown task"), "{:?}", ask(Proof::ApiKey));
    for proof in [Proof::Unproved, Proof::LocalUser] {
        assert!(ask(proof)[0].starts_with("a> "), "{proof:?}");
    }
}
