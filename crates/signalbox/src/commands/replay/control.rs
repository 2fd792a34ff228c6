//! `signalbox replay control`: drives a controlled run from another terminal.

use super::super::processes::{self, Process};
use crate::cli::{Global, ReplayAction, ReplayControlArgs, Which};
use crate::failure::Failure;
use crate::output;
use http::Method;
use serde_json::{Value, json};
use signalbox_control::api::routes::REPLAY;
use signalbox_control::table::harmless;
use signalbox_tape::pretty;
use signalbox_wire::printable;
use std::process::ExitCode;

/// Sends the action to the run, and prints the state that follows.
pub(super) async fn run(global: &Global, args: &ReplayControlArgs) -> Result<ExitCode, Failure> {
    let process = find(global, &Which { pid: args.pid }).await?;
    let (method, path, body) = asked(&args.action)?;
    let state = process.send(method, &format!("{REPLAY}{path}"), body.map(|body| body.to_string())).await?;
    let text = if global.json { format!("{state}\n") } else { shown(&state, &args.action) };
    output::in_form(global.json, &text)?;
    Ok(ExitCode::SUCCESS)
}

/// Finds the one process that runs a controlled replay.
async fn find(global: &Global, which: &Which) -> Result<Process, Failure> {
    let mut found = Vec::new();
    for process in processes::any(global, which)? {
        if process.find(REPLAY).await?.is_some() {
            found.push(process);
        }
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Failure::Refused(
            "no controlled replay runs with this data folder; `signalbox replay run TAPE --control …` starts one"
                .to_owned(),
        )),
        _ => Err(processes::several(&found)),
    }
}

fn asked(action: &ReplayAction) -> Result<(Method, String, Option<Value>), Failure> {
    let post = |path: &str, body: Option<Value>| Ok((Method::POST, path.to_owned(), body));
    match action {
        ReplayAction::Show => Ok((Method::GET, String::new(), None)),
        ReplayAction::Play => post("/play", None),
        ReplayAction::Pause => post("/pause", None),
        ReplayAction::Stop => post("/stop", None),
        ReplayAction::Step => post("/step", None),
        ReplayAction::Seek { call } => post("/seek", Some(json!({"to": call}))),
        ReplayAction::Speed { factor } => {
            let speed = factor.0.map_or_else(|| json!("max"), |factor| json!(factor));
            post("/speed", Some(json!({"speed": speed})))
        }
        ReplayAction::Break { at } => {
            let body = match (at.call, &at.method, &at.tool) {
                (Some(call), ..) => json!({"call": call}),
                (_, Some(pattern), _) => json!({"method": pattern}),
                (.., Some(pattern)) => json!({"tool": pattern}),
                _ => json!({"difference": true}),
            };
            post("/breakpoints", Some(body))
        }
        ReplayAction::Clear { id: Some(id) } => Ok((Method::DELETE, format!("/breakpoints/{id}"), None)),
        ReplayAction::Clear { id: None } => Ok((Method::DELETE, "/breakpoints".to_owned(), None)),
        ReplayAction::Inject { request } => post("/inject", Some(json!({"request": read(request, "REQUEST")?}))),
        ReplayAction::Modify { request: Some(request), .. } => {
            post("/modify", Some(json!({"request": read(request, "--request")?})))
        }
        ReplayAction::Modify { params, .. } => {
            post("/modify", Some(json!({"params": read(params.as_deref().unwrap_or_default(), "--params")?})))
        }
    }
}

fn hits(set: &Value) -> String {
    output::counted(set["hits"].as_u64().unwrap_or_default(), "hit")
}

fn read(text: &str, what: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::Usage(format!("{what} must be JSON: {error}")))
}

/// Formats the state as text.
fn shown(state: &Value, action: &ReplayAction) -> String {
    let word = |value: &Value| harmless(value.as_str().unwrap_or_default());
    let call = |call: &Value| {
        let subject = call["subject"].as_str().unwrap_or_default();
        harmless(format!("call {}: {} {subject}", call["place"], word(&call["method"])).trim_end())
    };
    let speed = state["speed"].as_f64().map_or_else(|| "max".to_owned(), |speed| format!("{speed}x"));
    let why = if state["why"].is_string() { format!(" ({})", word(&state["why"])) } else { String::new() };
    let calls = output::counted(state["count"].as_u64().unwrap_or_default(), "call");
    let mut text = format!("{}{why}, {calls}, speed {speed}\n", word(&state["state"]));
    if state["last"].is_object() {
        let last = &state["last"];
        text.push_str(&format!("last   {}: {}\n", call(last), word(&last["verdict"])));
        for one in last["differences"].as_array().into_iter().flatten() {
            let line =
                format!("{} {}: {} → {}", word(&one["pointer"]), word(&one["kind"]), one["recorded"], one["new"]);
            text.push_str(&format!("         {}\n", harmless(&line)));
        }
    }
    if state["current"].is_object() {
        let (current, edited) = (&state["current"], state["current"]["edited"] == true);
        let not_sent = current["not_sent"].as_str().map_or_else(String::new, |why| format!(" (not sent: {why})"));
        let edited = if edited { " (edited)" } else { "" };
        text.push_str(&format!("next   {}{edited}{not_sent}\n", call(current)));
    }
    for set in state["breakpoints"].as_array().into_iter().flatten() {
        text.push_str(&format!("break  {}: {}, {}\n", set["id"], word(&set["words"]), hits(set)));
    }
    match action {
        ReplayAction::Show | ReplayAction::Modify { .. } if state["current"]["request"].is_object() => {
            text.push_str(&message(&state["current"]["request"]));
        }
        ReplayAction::Inject { .. } => {
            let last = state["injected"].as_array().and_then(|all| all.last());
            match last.filter(|last| last["answer"].is_object()) {
                Some(last) => text.push_str(&message(&last["answer"])),
                None => text.push_str("no answer yet; `signalbox --json replay control show` has it when it comes\n"),
            }
        }
        _ => {}
    }
    text
}

fn message(message: &Value) -> String {
    format!("\n{}\n", printable::lines(&pretty(&message.to_string())))
}
