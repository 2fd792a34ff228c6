//! What a backend and its caller still say to each other when a permission is withdrawn in the middle: results of tasks
//! that the caller waits for, questions of the backend, the caller's answers, and its notifications.

use super::policies::{Entry, all_allowed, caller, catalog, roles_held, rulebook};
use super::withdrawn::{Host, of, result, task};
use super::world::{Client, End, World, ada, end_of, envelope};
use proptest::prelude::*;
use serde_json::{Value, json};
use signalbox_engine::bridge::CallProgress;
use signalbox_engine::catalog::{ListKind, Visibility as _};
use signalbox_engine::chain::EntryPattern;
use signalbox_engine::standing::Standing;
use signalbox_engine::{Caller, Command, Event, ExchangeId, PeerId};
use signalbox_govern::permissions::{PermissionSet, Switch, SwitchOffReason, SwitchTarget, Switches};
use signalbox_wire::{Edits, Era, Revision};

/// Text of a backend that must not reach a caller that lost its permission.
const SECRET: &str = "for the caller alone";

fn forwarded(commands: &[Command]) -> Option<ExchangeId> {
    commands.iter().find_map(|command| match command {
        Command::Forward { exchange, .. } => Some(*exchange),
        _ => None,
    })
}

fn is_told(commands: &[Command], text: &str) -> bool {
    commands.iter().any(|command| match command {
        Command::Send(message) => String::from_utf8_lossy(message.bytes()).contains(text),
        _ => false,
    })
}

/// A request about a task that waits for its backend, and what the backend answers.
struct TaskRequest {
    client: Client,
    method: &'static str,
    exchange: ExchangeId,
    answer: Value,
}

fn waiting_for(world: &World, ada: &Caller, entry: &Entry, host: Host) -> TaskRequest {
    let made = task(world, ada, entry, host);
    let other = world.client(ada, host.client());
    let mut client = if host.client() == Era::Legacy { made.client } else { other };
    let content = json!([{"type": "text", "text": SECRET}]);
    let done = json!({"resultType": "complete", "taskId": format!("t-{}", entry.name), "status": "completed",
        "createdAt": "c", "lastUpdatedAt": "c", "ttlMs": 60000, "result": {"resultType": "complete", "content": content}});
    let (method, answer) = match host {
        Host::Old => ("tasks/result", json!({"content": content})),
        Host::Translated => ("tasks/result", done),
        _ => ("tasks/get", done),
    };
    let commands = world.request(&mut client, method, &json!({"taskId": made.name}));
    let exchange = forwarded(&commands).unwrap_or_else(|| panic!("{host:?}: {commands:?}"));
    TaskRequest { client, method, exchange, answer }
}

fn answered(exchange: ExchangeId, answer: &Value) -> Event {
    Event::Answered { exchange, message: result(answer), edits: Edits::new(), status: None }
}

fn question(method: &str, id: u64) -> Value {
    let params = match method {
        "roots/list" => json!({}),
        _ => json!({"mode": "form", "message": SECRET, "requestedSchema": {"type": "object", "properties": {}}}),
    };
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// What the backend is answered to a question: whether it got a result.
fn response(commands: &[Command]) -> Option<bool> {
    commands.iter().find_map(|command| match command {
        Command::Respond { draft, .. } => Some(envelope_has(draft.message(), "result")),
        _ => None,
    })
}

fn envelope_has(bytes: &[u8], member: &str) -> bool {
    serde_json::from_slice::<Value>(bytes).unwrap().get(member).is_some()
}

fn asking(world: &World, ada: &Caller) -> Client {
    world.declaring(ada, Era::Legacy, &json!({"elicitation": {"form": {}}, "roots": {"listChanged": true}}))
}

fn asks(world: &World, client: &mut Client, entry: &Entry, message: &Value, about: Option<ExchangeId>) -> Vec<Command> {
    let event = Event::Asked { backend: entry.backend.into(), peer: PeerId(1), message: envelope(message), about };
    world.event(client, event)
}

fn first(open: bool) -> PermissionSet {
    if open { PermissionSet::default() } else { all_allowed() }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_result_of_a_task_that_is_waited_for_is_given_only_if_the_task_is_still_known(
        entries in catalog(),
        book in rulebook(),
        held in roles_held(),
        open in any::<bool>(),
        new in any::<bool>(),
    ) {
        let ada = caller("ada", &held);
        let revision = if new { Revision::LATEST } else { Revision::LATEST_LEGACY };
        let world = World::new(&entries, first(open), revision, Vec::new());
        let mut begun = Vec::new();
        let waits = |host: &Host| *host != Host::Kept && host.backend() == revision;
        for entry in of(&entries, ListKind::Tools) {
            for host in Host::ALL.into_iter().filter(waits) {
                begun.push((entry, host, waiting_for(&world, &ada, entry, host)));
            }
        }
        world.permissions.replace(book.set.clone());
        for (entry, host, mut one) in begun {
            let listed = world.listed(&ada, host.client(), ListKind::Tools).contains(&entry.name);
            let commands = world.event(&mut one.client, answered(one.exchange, &one.answer));
            prop_assert_eq!(is_told(&commands, SECRET), listed, "{} of {:?} {:?}; {}", one.method, host, entry, book);
            let Some(End::Answered(answer)) = end_of(&commands) else { panic!("{commands:?}") };
            prop_assert!(listed || answer["error"]["code"] == -32602, "{answer}");
        }
    }

    #[test]
    fn a_question_and_its_answer_pass_only_while_what_they_are_about_may_be_used(
        entries in catalog(),
        book in rulebook(),
        held in roles_held(),
        open in any::<bool>(),
    ) {
        let ada = caller("ada", &held);
        let world = World::new(&entries, first(open), Revision::LATEST_LEGACY, Vec::new());
        let mut begun = Vec::new();
        for entry in of(&entries, ListKind::Tools) {
            let mut client = asking(&world, &ada);
            let call = json!({"name": entry.name, "arguments": {"x": 1}});
            let about = forwarded(&world.request(&mut client, "tools/call", &call));
            for (method, about) in [("elicitation/create", about), ("elicitation/create", None), ("roots/list", None)] {
                let commands = asks(&world, &mut client, entry, &question(method, 1), about);
                prop_assert!(response(&commands).is_none(), "nothing was withdrawn");
            }
            begun.push((entry, client, about));
        }
        world.permissions.replace(book.set.clone());
        for (entry, mut client, about) in begun {
            let listed = world.listed(&ada, Era::Legacy, ListKind::Tools).contains(&entry.name);
            let shown = world.permissions.is_open() || world.permissions.shows_backend(&ada, entry.backend);
            for (id, may_pass) in [(1, listed), (2, shown), (3, shown)] {
                let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"action": "accept", "content": {}}});
                let got = response(&world.says(&mut client, &answer));
                prop_assert_eq!(got, Some(may_pass), "answer {} of {:?}; {}", id, entry, book);
            }
            let later = [("elicitation/create", about, listed), ("elicitation/create", None, shown), ("roots/list", None, shown)];
            for (method, about, may_pass) in later {
                let commands = asks(&world, &mut client, entry, &question(method, 2), about);
                prop_assert_eq!(is_told(&commands, method), may_pass, "{} of {:?}; {}", method, entry, book);
                prop_assert_eq!(response(&commands), (!may_pass).then_some(false), "{} of {:?}; {}", method, entry, book);
            }
            let changed = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
            let told = world.says(&mut client, &changed).into_iter().find_map(|command| match command {
                Command::Tell { except, .. } => Some(except),
                _ => None,
            });
            let told = told.unwrap();
            prop_assert_eq!(told.iter().any(|name| **name == *entry.backend), !shown, "{:?} {:?}; {}", told, entry, book);
        }
    }
}

fn switch(target: SwitchTarget) -> Switches {
    Switches(vec![Switch { target, off: SwitchOffReason::Killed, reason: "".into() }])
}

fn slow() -> Entry {
    Entry { kind: ListKind::Tools, backend: "files", name: "slow".to_owned(), read_only: false }
}

/// Polls a task of a new backend for a client that waits with `tasks/result`, up to the pause.
#[test]
fn a_task_that_is_polled_for_its_result_is_polled_no_more_after_a_kill() {
    let ada = ada(Standing::default());
    for kill in [false, true] {
        let world = World::new(&[slow()], PermissionSet::default(), Revision::LATEST, Vec::new());
        let mut one = waiting_for(&world, &ada, &slow(), Host::Translated);
        let working = json!({"resultType": "complete", "taskId": "t-slow", "status": "working", "createdAt": "c",
            "lastUpdatedAt": "c", "ttlMs": 60000});
        let commands = world.event(&mut one.client, answered(one.exchange, &working));
        assert!(commands.iter().any(|command| matches!(command, Command::Wake { .. })), "{commands:?}");
        if kill {
            world.permissions.switch(switch(SwitchTarget::Entries(EntryPattern::new("files/slow"))));
        }
        let commands = world.event(&mut one.client, Event::Wake { exchange: one.exchange, round: None });
        assert_eq!(forwarded(&commands).is_none(), kill, "{commands:?}");
        assert_eq!(end_of(&commands).is_some_and(|end| matches!(end, End::Answered(_))), kill, "{commands:?}");
    }
}

/// The question is in the answer of a new backend, or in the state of its task, or is shown to a client of either era.
#[test]
fn a_question_in_an_answer_is_not_asked_after_a_kill() {
    let ada = ada(Standing::default());
    for (era, kill) in [(Era::Legacy, false), (Era::Legacy, true), (Era::Modern, false), (Era::Modern, true)] {
        let world = World::new(&[slow()], PermissionSet::default(), Revision::LATEST, Vec::new());
        let mut client = asking(&world, &ada);
        if era == Era::Modern {
            client = world.client(&ada, era);
        }
        let commands = world.request(&mut client, "tools/call", &json!({"name": "slow", "arguments": {}}));
        let (exchange, call) = commands
            .iter()
            .find_map(|command| match command {
                Command::Forward { exchange, call, .. } => Some((*exchange, call.clone())),
                _ => None,
            })
            .unwrap();
        if kill {
            world.permissions.switch(switch(SwitchTarget::Entries(EntryPattern::new("files/slow"))));
        }
        let asked = question("elicitation/create", 1);
        let wants = json!({"resultType": "input_required", "requestState": "s",
            "inputRequests": {"q": {"method": asked["method"], "params": asked["params"]}}});
        let event = match era {
            Era::Legacy => Event::Unfinished {
                exchange,
                message: result(&wants),
                reach: CallProgress::Input,
                call,
                backend: Revision::LATEST,
            },
            Era::Modern => answered(exchange, &wants),
        };
        let commands = world.event(&mut client, event);
        assert_eq!(is_told(&commands, SECRET), !kill, "{era:?}: {commands:?}");
    }
}

#[test]
fn a_caller_that_is_off_is_asked_nothing_and_nothing_of_it_goes_to_backends() {
    let ada = ada(Standing::default());
    let world = World::new(&[slow()], PermissionSet::default(), Revision::LATEST_LEGACY, Vec::new());
    let mut client = asking(&world, &ada);
    let about = forwarded(&world.request(&mut client, "tools/call", &json!({"name": "slow", "arguments": {}})));
    let ask = |client: &mut Client, about| asks(&world, client, &slow(), &question("elicitation/create", 1), about);
    assert!(is_told(&ask(&mut client, about), SECRET));
    world.permissions.switch(switch(SwitchTarget::Principals(ada.principal().as_str().into())));
    assert_eq!(response(&ask(&mut client, about)), Some(false));
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"action": "accept", "content": {}}});
    assert_eq!(response(&world.says(&mut client, &answer)), Some(false));
    for method in ["roots/list_changed", "progress", "message", "of/its/own"] {
        let told =
            json!({"jsonrpc": "2.0", "method": format!("notifications/{method}"), "params": {"progressToken": 1}});
        let leaves = |command: &Command| matches!(command, Command::Tell { .. } | Command::Respond { .. });
        assert!(!world.says(&mut client, &told).iter().any(leaves), "{method}");
    }
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    let cancels = |command: &Command| matches!(command, Command::Cancel { .. });
    assert!(world.says(&mut client, &cancelled).iter().any(cancels));
}
