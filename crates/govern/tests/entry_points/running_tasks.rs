//! A call that became a task counts as running until the task ends.

use super::policies::Entry;
use super::world::{Client, End, World, ada, end_of, envelope};
use serde_json::{Value, json};
use signalbox_engine::catalog::ListKind;
use signalbox_engine::chain::{EntryPattern, Interceptor};
use signalbox_engine::standing::Standing;
use signalbox_engine::{Event, PeerId};
use signalbox_govern::call_budgets::{Budgets, CallBudgets, ToolBounds};
use signalbox_govern::permissions::PermissionSet;
use signalbox_wire::{Era, Revision};
use std::sync::Arc;

/// A gateway that lets one call of the tool `slow` run at once.
fn world(revision: Revision) -> World {
    let entry = Entry { kind: ListKind::Tools, backend: "files", name: "slow".to_owned(), read_only: false };
    let bounds = ToolBounds {
        pattern: EntryPattern::new("files/slow"),
        max_concurrent: Some(1),
        max_result: None,
        max_repeats: None,
        calls_per_day: None,
        price: 0,
        timeout: None,
    };
    let budgets: Arc<dyn Interceptor> = Arc::new(CallBudgets::new(Budgets { tools: vec![bounds], user_per_day: None }));
    World::of_backends(&["files"], &[entry], PermissionSet::default(), revision, vec![budgets])
}

fn call(era: Era) -> Value {
    let mut params = json!({"name": "slow", "arguments": {}});
    if era == Era::Legacy {
        params["task"] = json!({"ttl": 60000});
    }
    params
}

fn state(status: &str, era: Era) -> Value {
    let mut task = json!({"taskId": "t", "status": status, "createdAt": "c", "lastUpdatedAt": "u"});
    task[if era == Era::Legacy { "ttl" } else { "ttlMs" }] = json!(60000);
    if era == Era::Modern {
        task["resultType"] = json!("complete");
        match status {
            "completed" => task["result"] = json!({"content": [], "resultType": "complete"}),
            "failed" => task["error"] = json!({"code": -1, "message": "m"}),
            _ => {}
        }
    }
    task
}

/// Makes a task of the tool, and returns its client and the name that it was told.
fn task(world: &World, era: Era) -> (Client, String) {
    let mut client = world.client(&ada(Standing::default()), era);
    let commands = world.request(&mut client, "tools/call", &call(era));
    let mut made = state("working", era);
    made["resultType"] = json!("task");
    let made = if era == Era::Legacy { json!({ "task": state("working", era) }) } else { made };
    let told = world.answered(&mut client, &commands, &made);
    let task = if era == Era::Legacy { &told["result"]["task"] } else { &told["result"] };
    (client, task["taskId"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned())
}

fn runs(world: &World, era: Era) -> bool {
    let end = world.ask(&ada(Standing::default()), era, "tools/call", &call(era));
    if let End::Answered(answer) = &end {
        assert_eq!(answer["error"]["data"]["limit"], "concurrent", "{answer}");
    }
    end.leaves()
}

#[test]
fn a_call_that_became_a_task_runs_until_the_task_ends() {
    for (era, revision) in [(Era::Legacy, Revision::LATEST_LEGACY), (Era::Modern, Revision::LATEST)] {
        let mut ways = vec![];
        for status in ["completed", "failed", "cancelled"] {
            ways.push(("tasks/get", state(status, era)));
            ways.push(("notification", state(status, era)));
        }
        if era == Era::Legacy {
            ways.push(("tasks/cancel", state("cancelled", era)));
            ways.push(("tasks/result", json!({"content": []})));
        }
        for (method, told) in ways {
            let world = world(revision);
            let (mut client, name) = task(&world, era);
            assert!(!runs(&world, era), "{era:?} {method} {told}");
            if method == "notification" {
                let method = if era == Era::Legacy { "notifications/tasks/status" } else { "notifications/tasks" };
                let message = envelope(&json!({"jsonrpc": "2.0", "method": method, "params": told}));
                world.event(
                    &mut client,
                    Event::Notified { backend: "files".into(), peer: PeerId(1), message, about: None },
                );
            } else {
                let commands = world.request(&mut client, "tasks/get", &json!({ "taskId": name }));
                world.answered(&mut client, &commands, &state("working", era));
                assert!(!runs(&world, era), "{era:?} {method} {told}");
                let commands = world.request(&mut client, method, &json!({ "taskId": name }));
                assert!(end_of(&commands).is_some_and(|end| end.leaves()), "{era:?} {method}");
                world.answered(&mut client, &commands, &told);
            }
            assert!(runs(&world, era), "{era:?} {method} {told}");
        }
    }
}
