//! What a caller began while it was allowed, and comes back to after the permissions were changed: subscriptions,
//! listen requests, tasks, rounds of input, sign-ins and held calls. None of them lets it use what is no longer listed.
//! A call that a backend has already is let to its end.

use super::policies::{Entry, Rulebook, all_allowed, caller, catalog, roles_held, rulebook};
use super::world::{Client, End, World, end_of, envelope};
use proptest::prelude::*;
use serde_json::{Value, json};
use signalbox_engine::bridge::CallProgress;
use signalbox_engine::catalog::ListKind;
use signalbox_engine::chain::{
    Case, Hold, HoldAnswer, HoldQuestion, HoldResponse, Interceptor, Judgement, Phase, Verdict,
};
use signalbox_engine::{AuthorizedCall, Caller, Command, Event, ExchangeId, Fault, FaultKind, PeerId};
use signalbox_govern::permissions::PermissionSet;
use signalbox_wire::{Edits, Era, Revision};
use std::sync::Arc;
use std::time::Duration;

/// Holds calls whose arguments say so.
struct Pausing;

impl Interceptor for Pausing {
    fn name(&self) -> &'static str {
        "pausing"
    }

    fn judge(&self, case: &Case<'_>, resumed: Option<HoldResponse<'_>>) -> Judgement {
        let wanted = case.message.params().is_some_and(|params| params.windows(6).any(|part| part == b"\"hold\""));
        if resumed.is_some() || case.phase != Phase::Request || !wanted {
            return Judgement::pass();
        }
        let question = HoldQuestion::Pause(Duration::from_secs(1));
        Verdict::Hold(Hold { question, cursor: 0, message: None }).into()
    }
}

/// The call that leaves because of a request.
fn forwarded(commands: Vec<Command>) -> (ExchangeId, AuthorizedCall) {
    let call = commands.into_iter().find_map(|command| match command {
        Command::Forward { exchange, call, .. } => Some((exchange, call)),
        _ => None,
    });
    call.expect("everything is allowed when it begins")
}

pub fn result(result: &Value) -> signalbox_wire::Envelope {
    envelope(&json!({"jsonrpc": "2.0", "id": 1, "result": result}))
}

/// How a call goes on.
#[derive(Copy, Clone, PartialEq, Debug)]
enum Return {
    /// The client has answered what the backend wanted to know.
    Round,
    /// The caller has signed in.
    SignIn,
    /// Whoever held the call lets it go.
    Hold,
}

/// A call that waits, and what continues it.
struct Waiting {
    client: Client,
    event: Event,
}

fn waiting(world: &World, ada: &Caller, tool: &str, how: Return) -> Waiting {
    let mut client = world.declaring(ada, Era::Legacy, &json!({"elicitation": {"form": {}, "url": {}}}));
    let mut arguments = json!({"x": 1});
    if how == Return::Hold {
        arguments["hold"] = json!(true);
    }
    let commands = world.request(&mut client, "tools/call", &json!({"name": tool, "arguments": arguments}));
    let accepted = envelope(&json!({"jsonrpc": "2.0", "id": 1, "result": {"action": "accept", "content": {}}}));
    let accepted = Event::Received { stream: super::world::STREAM, message: accepted };
    let event = match how {
        Return::Hold => {
            let held = commands.iter().find_map(|command| match command {
                Command::Consult { exchange, .. } => Some(*exchange),
                _ => None,
            });
            Event::Consulted { exchange: held.unwrap(), answer: HoldAnswer::GoOn { by: None } }
        }
        Return::Round => {
            let (exchange, call) = forwarded(commands);
            let question = json!({"method": "elicitation/create",
                "params": {"mode": "form", "message": "?", "requestedSchema": {}}});
            let wants = json!({"resultType": "input_required", "requestState": "s", "inputRequests": {"q": question}});
            let (message, reach, backend) = (result(&wants), CallProgress::Input, Revision::LATEST);
            world.event(&mut client, Event::Unfinished { exchange, message, reach, call, backend });
            accepted
        }
        Return::SignIn => {
            let (exchange, call) = forwarded(commands);
            let fault = Fault::new(FaultKind::SignInNeeded, "sign in").with_str("url", "https://as.example/");
            world.event(&mut client, Event::SignIn { exchange, fault, call });
            accepted
        }
    };
    Waiting { client, event }
}

/// Who runs a task, and for whom.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Host {
    /// An old backend, for a client of 2025-11-25.
    Old,
    /// A new backend, for such a client.
    Translated,
    /// The gateway, which kept the result of a new backend for such a client.
    Kept,
    /// A new backend, for a new client.
    New,
    /// An old backend, for a new client.
    Hosted,
}

impl Host {
    pub const ALL: [Self; 5] = [Self::Old, Self::Translated, Self::Kept, Self::New, Self::Hosted];

    pub fn backend(self) -> Revision {
        match self {
            Self::Old | Self::Hosted => Revision::LATEST_LEGACY,
            Self::Translated | Self::Kept | Self::New => Revision::LATEST,
        }
    }

    pub fn client(self) -> Era {
        match self {
            Self::Old | Self::Translated | Self::Kept => Era::Legacy,
            Self::New | Self::Hosted => Era::Modern,
        }
    }

    /// The requests about a task.
    fn requests(self, task: &str) -> Vec<(&'static str, Value)> {
        let about = json!({"taskId": task});
        match self {
            // A task that is over cannot be cancelled, whoever asks.
            Self::Kept => vec![("tasks/get", about.clone()), ("tasks/result", about)],
            Self::Old | Self::Translated => {
                vec![("tasks/get", about.clone()), ("tasks/result", about.clone()), ("tasks/cancel", about)]
            }
            Self::New | Self::Hosted => vec![
                ("tasks/get", about.clone()),
                ("tasks/cancel", about),
                ("tasks/update", json!({"taskId": task, "inputResponses": {}})),
                ("subscriptions/listen", json!({"notifications": {"taskIds": [task]}})),
            ],
        }
    }
}

/// A task that a caller made, by the name that it was told.
pub struct Task {
    pub client: Client,
    pub name: String,
}

pub fn task(world: &World, ada: &Caller, entry: &Entry, host: Host) -> Task {
    let mut client = world.client(ada, host.client());
    let mut params = json!({"name": entry.name, "arguments": {"x": 1}});
    if host.client() == Era::Legacy {
        params["task"] = json!({"ttl": 60000});
    }
    let (exchange, call) = forwarded(world.request(&mut client, "tools/call", &params));
    let own = format!("t-{}", entry.name);
    let new = json!({"resultType": "task", "taskId": own, "status": "working", "createdAt": "c", "ttlMs": 60000});
    let old = json!({"task": {"taskId": own, "status": "working", "createdAt": "c", "ttl": 60000}});
    let unfinished = |result: Value, reach: CallProgress| {
        let message = super::withdrawn::result(&result);
        Event::Unfinished { exchange, message, reach, call: call.clone(), backend: Revision::LATEST }
    };
    let answered =
        |message: signalbox_wire::Envelope, edits: Edits| Event::Answered { exchange, message, edits, status: None };
    let event = match host {
        Host::Old => answered(result(&old), Edits::new()),
        Host::Translated => unfinished(new, CallProgress::Task),
        Host::Kept => unfinished(json!({"resultType": "complete", "content": []}), CallProgress::Whole),
        Host::New => answered(result(&new), Edits::new()),
        Host::Hosted => {
            let (message, mut edits) = (result(&old), Edits::new());
            edits.replace(message.result_span().unwrap(), new.to_string());
            world.hosts(ada, &own, entry.backend);
            answered(message, edits)
        }
    };
    let Some(End::Answered(told)) = end_of(&world.event(&mut client, event)) else { panic!("no task was told of") };
    let told = &told["result"];
    let name = told["taskId"].as_str().or_else(|| told["task"]["taskId"].as_str()).unwrap_or_else(|| panic!("{told}"));
    Task { name: name.to_owned(), client }
}

impl Task {
    /// What comes of a request about it, of the same session or, in the new era, of another.
    fn asked(&mut self, world: &World, host: Host, method: &str, params: &Value) -> End {
        let mut other = world.client(&self.client.caller, host.client());
        let client = if host.client() == Era::Legacy { &mut self.client } else { &mut other };
        let end = end_of(&world.request(client, method, params)).unwrap();
        // The next request of the session may have the same id.
        world.says(client, &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}));
        end
    }
}

fn told_of_change(world: &World, client: &mut Client, entry: &Entry, about: Option<ExchangeId>) -> bool {
    let message = envelope(
        &json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": entry.name}}),
    );
    let event = Event::Notified { backend: entry.backend.into(), peer: PeerId(1), message, about };
    world.event(client, event).iter().any(|command| matches!(command, Command::Send(_)))
}

fn first(open: bool) -> PermissionSet {
    if open { PermissionSet::default() } else { all_allowed() }
}

pub fn of(entries: &[Entry], kind: ListKind) -> impl Iterator<Item = &Entry> {
    entries.iter().filter(move |entry| entry.kind == kind)
}

fn check_calls(
    world: &World,
    ada: &Caller,
    begun: Vec<(&Entry, Return, Waiting)>,
    book: &Rulebook,
) -> Result<(), TestCaseError> {
    let listed = world.listed(ada, Era::Legacy, ListKind::Tools);
    for (entry, how, mut waiting) in begun {
        let end = end_of(&world.event(&mut waiting.client, waiting.event));
        let place = format!("{how:?} of {entry:?}, listed {listed:?}: {end:?}; {book}");
        let goes_on = end.is_some_and(|end| end.goes_on());
        if goes_on {
            prop_assert!(listed.contains(&entry.name), "goes on and is not listed: {place}");
        } else if !book.looks_at_arguments && !book.asks {
            prop_assert!(!listed.contains(&entry.name), "is listed and does not go on: {place}");
        }
    }
    Ok(())
}

fn check_tasks(
    world: &World,
    tasks: Vec<(&Entry, Host, Task)>,
    book: &Rulebook,
    bob: &Caller,
) -> Result<(), TestCaseError> {
    for (entry, host, mut task) in tasks {
        let listed = world.listed(&task.client.caller, host.client(), ListKind::Tools);
        for (method, params) in host.requests(&task.name) {
            let end = task.asked(world, host, method, &params);
            let place = format!("{method} of {host:?} {entry:?}, listed {listed:?}: {end:?}; {book}");
            prop_assert_eq!(end.goes_on(), listed.contains(&entry.name), "{}", place);
            let unknown = serde_json::from_str(&params.to_string().replace(&task.name, "nobody")).unwrap();
            if let (false, nobody @ End::Answered(_)) = (end.goes_on(), task.asked(world, host, method, &unknown)) {
                prop_assert_eq!(unnamed(&end, &task.name), unnamed(&nobody, "nobody"), "{}", place);
            }
            let others = world.ask(bob, host.client(), method, &params);
            let reached = matches!(&others, End::Leaves(backend, _) if backend == entry.backend);
            let gotten = matches!(&others, End::Answered(answer) if answer.get("result").is_some());
            prop_assert!(!reached && !gotten, "another caller's: {place}: {others:?}");
            // The only new backend with tasks is asked about those that nobody remembers, which it may have had before
            // a restart.
            if let nobody @ End::Answered(_) = world.ask(bob, host.client(), method, &unknown) {
                prop_assert_eq!(
                    unnamed(&others, &task.name),
                    unnamed(&nobody, "nobody"),
                    "another caller's: {}",
                    place
                );
            }
        }
        if host.client() == Era::Legacy
            && let End::Answered(answer) = task.asked(world, host, "tasks/list", &json!({}))
        {
            let shown = answer["result"]["tasks"].as_array().into_iter().flatten();
            let shown = shown.into_iter().any(|one| one["taskId"] == *task.name);
            prop_assert!(!shown || listed.contains(&entry.name), "{host:?} {entry:?} is shown: {answer}; {book}");
        }
    }
    Ok(())
}

/// The end of a request without the task that it asked for.
fn unnamed(end: &End, task: &str) -> String {
    format!("{end:?}").replace(task, "TASK")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_call_that_waited_goes_on_only_if_it_is_still_allowed(
        entries in catalog(),
        book in rulebook(),
        held in roles_held(),
        open in any::<bool>(),
    ) {
        let ada = caller("ada", &held);
        let world = World::new(&entries, first(open), Revision::LATEST_LEGACY, vec![Arc::new(Pausing)]);
        let mut begun = Vec::new();
        for entry in of(&entries, ListKind::Tools) {
            for how in [Return::Round, Return::SignIn, Return::Hold] {
                begun.push((entry, how, waiting(&world, &ada, &entry.name, how)));
            }
        }
        world.permissions.replace(book.set.clone());
        check_calls(&world, &ada, begun, &book)?;
    }

    #[test]
    fn a_task_is_known_as_long_as_its_tool_is_listed_and_to_its_caller_alone(
        entries in catalog(),
        book in rulebook(),
        held in roles_held(),
        open in any::<bool>(),
        new in any::<bool>(),
    ) {
        let (ada, bob) = (caller("ada", &held), caller("bob", &held));
        let revision = if new { Revision::LATEST } else { Revision::LATEST_LEGACY };
        let world = World::new(&entries, first(open), revision, Vec::new());
        let mut begun = Vec::new();
        for entry in of(&entries, ListKind::Tools) {
            for host in Host::ALL.into_iter().filter(|host| host.backend() == revision) {
                begun.push((entry, host, task(&world, &ada, entry, host)));
            }
        }
        world.permissions.replace(book.set.clone());
        check_tasks(&world, begun, &book, &bob)?;
    }

    #[test]
    fn changes_of_a_resource_are_told_as_long_as_it_is_listed(
        entries in catalog(),
        book in rulebook(),
        held in roles_held(),
        open in any::<bool>(),
    ) {
        let ada = caller("ada", &held);
        let world = World::new(&entries, first(open), Revision::LATEST_LEGACY, Vec::new());
        let mut followed = Vec::new();
        for entry in of(&entries, ListKind::Resources) {
            let mut client = world.client(&ada, Era::Legacy);
            let commands = world.request(&mut client, "resources/subscribe", &json!({"uri": entry.name}));
            prop_assert!(commands.iter().any(|command| matches!(command, Command::Watch(_))));
            followed.push((entry, client, None));
            let mut client = world.client(&ada, Era::Modern);
            let wanted = json!({"notifications": {"resourceSubscriptions": [entry.name]}});
            world.request(&mut client, "subscriptions/listen", &wanted);
            let exchange = client.front.exchanges()[0].id;
            world.event(&mut client, Event::Listening { exchange });
            followed.push((entry, client, Some(exchange)));
        }
        for (entry, client, about) in &mut followed {
            prop_assert!(told_of_change(&world, client, entry, *about), "nothing was withdrawn");
        }
        world.permissions.replace(book.set.clone());
        for (entry, mut client, about) in followed {
            let listed = world.listed(&ada, client.era, ListKind::Resources);
            let told = told_of_change(&world, &mut client, entry, about);
            prop_assert_eq!(told, listed.contains(&entry.name), "{:?}, listed {:?}; {}", entry, listed, book);
        }
    }
}
