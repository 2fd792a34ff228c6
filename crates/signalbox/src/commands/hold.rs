//! `signalbox hold`: breakpoints, and messages that wait for a decision.

use super::processes::{self, Act, Process};
use super::{administration, editor};
use crate::cli::{EditArgs, Global, HoldCommand, How, Which};
use crate::failure::Failure;
use crate::output;
use http::Method;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use signalbox_control::api::routes::{BREAKPOINTS, HOLDS};
use signalbox_control::table;
use signalbox_tape::pretty;
use std::io::Read as _;
use std::process::ExitCode;

pub(super) async fn run(global: &Global, command: HoldCommand) -> Result<ExitCode, Failure> {
    match command {
        HoldCommand::List { which } => list(global, &which).await,
        HoldCommand::Show { id, which } => show(global, &which, id).await,
        HoldCommand::Release { id, lasting, which } => {
            let lasting = lasting.map(|lasting| ("for", Value::from(lasting).to_string()));
            settle(global, &which, id, "release", lasting).await
        }
        HoldCommand::Edit(args) => edit(global, args).await,
        HoldCommand::Answer { id, result, text, which } => {
            let result = match (result, text) {
                (Some(result), _) => raw(&given(&result)?, "--result")?,
                (None, text) => json!({"content": [{"type": "text", "text": text.unwrap_or_default()}]}).to_string(),
            };
            settle(global, &which, id, "answer", Some(("result", result))).await
        }
        HoldCommand::Refuse { id, reason, which } => {
            let reason = reason.map(|reason| ("reason", Value::from(reason).to_string()));
            settle(global, &which, id, "refuse", reason).await
        }
        HoldCommand::Next { count, tool, how } => {
            let mut wanted = json!({"next": count});
            if let Some(tool) = tool {
                wanted["tool"] = tool.into();
            }
            set(global, &how, wanted).await
        }
        HoldCommand::Tool { pattern, how } => set(global, &how, json!({"tool": pattern})).await,
        HoldCommand::Method { pattern, how } => set(global, &how, json!({"method": pattern})).await,
        HoldCommand::Clear { id, which } => {
            let target = id.map(|id| id.to_string()).unwrap_or_default();
            let cleared = clear(global, &which, id).await;
            administration::tried_alone(global, ("breakpoint.clear", &target), cleared)
        }
    }
}

async fn list(global: &Global, which: &Which) -> Result<ExitCode, Failure> {
    let (mut holds, mut breakpoints) = (Vec::new(), Vec::new());
    for process in processes::all(global, which)? {
        let held = process.send(Method::GET, HOLDS, None).await?;
        holds.extend(held.as_array().cloned().unwrap_or_default());
        let mut set = process.send(Method::GET, BREAKPOINTS, None).await?;
        for one in set.as_array_mut().into_iter().flatten() {
            one["pid"] = process.pid.parse::<u64>().ok().into();
            breakpoints.push(one.take());
        }
    }
    if global.json {
        output::json(&json!({"holds": holds, "breakpoints": breakpoints}))?;
    } else {
        output::result(&shown(&holds, &breakpoints))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn shown(holds: &[Value], breakpoints: &[Value]) -> String {
    let mut text = if holds.is_empty() { "Nothing is held.\n".to_owned() } else { String::new() };
    if !holds.is_empty() {
        let row = |held: &Value| {
            let left = format!("{} s", held["left_ms"].as_u64().unwrap_or(0).div_ceil(1000));
            vec![
                held["id"].to_string(),
                word(held, "phase"),
                word(held, "method"),
                word(held, "subject"),
                word(held, "backend"),
                word(held, "principal"),
                left,
                word(held, "reason"),
                held["pid"].to_string(),
            ]
        };
        let headings = ["ID", "WHAT", "METHOD", "ABOUT", "BACKEND", "WHO", "LEFT", "WHY", "PID"];
        text = table::render(&headings, &holds.iter().map(row).collect::<Vec<_>>());
    }
    if !breakpoints.is_empty() {
        let row = |one: &Value| {
            let within = format!("{} s", one["within_ms"].as_u64().unwrap_or(0) as f64 / 1000.0);
            vec![one["id"].to_string(), word(one, "words"), within, one["hits"].to_string(), one["pid"].to_string()]
        };
        let rows: Vec<_> = breakpoints.iter().map(row).collect();
        text = format!("{text}\n{}", table::render(&["BREAKPOINT", "HOLDS", "FOR AT MOST", "HELD", "PID"], &rows));
    }
    text
}

fn word(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or("-").to_owned()
}

/// Name and JSON value of a member of the request body. The value is sent unchanged.
type Member = Option<(&'static str, String)>;

async fn settle(
    global: &Global,
    which: &Which,
    id: Option<u64>,
    what: &'static str,
    with: Member,
) -> Result<ExitCode, Failure> {
    let (process, held) = held_for(global, which, id, what).await?;
    send(global, &process, number(&held), what, with).await
}

/// Finds a held message to decide about: the one with this id, or the only one. If there is none, the audit log has the
/// attempt.
async fn held_for(
    global: &Global,
    which: &Which,
    id: Option<u64>,
    what: &'static str,
) -> Result<(Process, Value), Failure> {
    let found = match id {
        Some(id) => {
            let (path, body) = (format!("{HOLDS}/{id}/{what}"), Some("{}".to_owned()));
            let act = Act { method: Method::POST, path, body };
            processes::having_for(global, which, &format!("{HOLDS}/{id}"), act).await
        }
        None => held(global, which, None).await,
    };
    let target = id.map(|id| id.to_string()).unwrap_or_default();
    administration::tried_alone(global, (&format!("hold.{what}"), &target), found)
}

/// Finds a held message: the one with this id, or the only one.
async fn held(global: &Global, which: &Which, id: Option<u64>) -> Result<(Process, Value), Failure> {
    if let Some(id) = id {
        return processes::having(global, which, &format!("{HOLDS}/{id}")).await;
    }
    let mut all = Vec::new();
    for process in processes::all(global, which)? {
        let held = process.send(Method::GET, HOLDS, None).await?;
        all.extend(held.as_array().into_iter().flatten().map(|one| (process.clone(), number(one))));
    }
    match &all[..] {
        [] => Err(Failure::NothingHeld),
        [(process, id)] => {
            let whole = process.send(Method::GET, &format!("{HOLDS}/{id}"), None).await?;
            Ok((process.clone(), whole))
        }
        several => {
            let ids: Vec<String> = several.iter().map(|(_, id)| id.to_string()).collect();
            Err(Failure::Usage(format!("several messages are held; name one: {}", ids.join(", "))))
        }
    }
}

fn number(held: &Value) -> u64 {
    held["id"].as_u64().unwrap_or(0)
}

async fn show(global: &Global, which: &Which, id: Option<u64>) -> Result<ExitCode, Failure> {
    let (_, held) = held(global, which, id).await?;
    if global.json {
        output::json(&held)?;
        return Ok(ExitCode::SUCCESS);
    }
    let seconds = |key: &str| format!("{} s", held[key].as_u64().unwrap_or(0).div_ceil(1000));
    let mut text = String::new();
    for (label, value) in [
        ("held", held["id"].to_string()),
        ("what", word(&held, "phase")),
        ("method", word(&held, "method")),
        ("about", word(&held, "subject")),
        ("backend", word(&held, "backend")),
        ("who", word(&held, "principal")),
        ("why", word(&held, "reason")),
        ("session", held["session"].to_string()),
        ("call", held["exchange"].to_string()),
        ("since", seconds("held_ms")),
        ("left", seconds("left_ms")),
        ("pid", held["pid"].to_string()),
    ] {
        text.push_str(&format!("{label:<8} {}\n", table::harmless(&value)));
    }
    let message = pretty(held["text"].as_str().unwrap_or_default());
    text.push_str(&format!("\n{message}\n"));
    output::result(&text)?;
    Ok(ExitCode::SUCCESS)
}

async fn send(global: &Global, process: &Process, id: u64, what: &str, with: Member) -> Result<ExitCode, Failure> {
    let more = with.map(|(name, json)| format!(r#","{name}":{json}"#)).unwrap_or_default();
    let body = format!(r#"{{"by":{}{more}}}"#, json!(processes::user()));
    let done = process.send(Method::POST, &format!("{HOLDS}/{id}/{what}"), Some(body)).await?;
    if global.json {
        output::json(&done)?;
    } else {
        let about = done["subject"].as_str().unwrap_or_default();
        let past = match what {
            "release" => "released",
            "edit" => "edited and released",
            "answer" => "answered",
            _ => "refused",
        };
        let text = format!("{id} ({} {about}) is {past}", word(&done, "method"));
        output::result(&format!("{}\n", table::harmless(&text)))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn edit(global: &Global, args: EditArgs) -> Result<ExitCode, Failure> {
    let (process, held) = held_for(global, &args.which, args.id, "edit").await?;
    let id = number(&held);
    let parts = [("message", &args.message), ("params", &args.params), ("result", &args.result)];
    if let Some((name, text)) = parts.into_iter().find_map(|(name, text)| Some((name, text.as_deref()?))) {
        let text = raw(&given(text)?, name)?;
        return send(global, &process, id, "edit", Some((name, text))).await;
    }
    let mut opened = pretty(held["text"].as_str().unwrap_or_default());
    let mut refused = false;
    loop {
        let Some(text) = editor::edit(&opened)? else {
            output::say(format_args!("nothing changed; {id} stays held"));
            if refused {
                output::say(format_args!("your edit is kept in {}", editor::keep(&opened)?.display()));
            }
            return Ok(ExitCode::FAILURE);
        };
        let sent = match raw(&text, "the message") {
            Ok(message) => send(global, &process, id, "edit", Some(("message", message))).await,
            Err(error) => Err(error),
        };
        match sent {
            Err(error @ (Failure::Usage(_) | Failure::Refused(_))) if is_held(&process, id).await => {
                output::complain(&error);
                output::say("the editor opens again; leave it without a change to give up");
                (opened, refused) = (text, true);
            }
            Err(error) => {
                output::say(format_args!("your edit is kept in {}", editor::keep(&text)?.display()));
                return Err(error);
            }
            done => return done,
        }
    }
}

async fn is_held(process: &Process, id: u64) -> bool {
    matches!(process.find(&format!("{HOLDS}/{id}")).await, Ok(Some(_)))
}

/// Returns the text of an argument, or standard input for `-`.
fn given(text: &str) -> Result<String, Failure> {
    if text != "-" {
        return Ok(text.to_owned());
    }
    let mut read = String::new();
    std::io::stdin().read_to_string(&mut read).map_err(|error| Failure::File { path: "-".into(), error })?;
    Ok(read)
}

/// Validates that the text is JSON, and returns it unchanged.
fn raw(text: &str, what: &str) -> Result<String, Failure> {
    let read: Result<Box<RawValue>, _> = serde_json::from_str(text);
    read.map(|json| json.get().to_owned()).map_err(|error| Failure::Usage(format!("{what} must be JSON: {error}")))
}

async fn set(global: &Global, how: &How, mut wanted: Value) -> Result<ExitCode, Failure> {
    let process = processes::governing(global, &how.which).await?;
    if how.answers {
        wanted["phase"] = "response".into();
    }
    if let Some(within) = how.within {
        wanted["within_ms"] = u64::try_from(within.as_millis()).unwrap_or(u64::MAX).into();
    }
    let set = process.send(Method::POST, BREAKPOINTS, Some(wanted.to_string())).await?;
    if global.json {
        output::json(&set)?;
    } else {
        let text = format!("breakpoint {}: holds {}", set["id"], word(&set, "words"));
        output::result(&format!("{}\n", table::harmless(&text)))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn clear(global: &Global, which: &Which, id: Option<u64>) -> Result<ExitCode, Failure> {
    let Some(id) = id else {
        let mut cleared = 0;
        for process in processes::all(global, which)? {
            cleared += process.send(Method::DELETE, BREAKPOINTS, None).await?["cleared"].as_u64().unwrap_or(0);
        }
        return told(global, &json!({"cleared": cleared}), format_args!("{cleared} breakpoints cleared"));
    };
    let process = processes::governing(global, which).await?;
    let cleared = process.send(Method::DELETE, &format!("{BREAKPOINTS}/{id}"), None).await?;
    told(global, &cleared, format_args!("breakpoint {id} cleared"))
}

fn told(global: &Global, value: &Value, words: std::fmt::Arguments<'_>) -> Result<ExitCode, Failure> {
    match global.json {
        true => output::json(value)?,
        false => output::result(&format!("{words}\n"))?,
    }
    Ok(ExitCode::SUCCESS)
}
