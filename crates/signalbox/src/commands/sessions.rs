//! `signalbox sessions`: who is connected, and what they are doing.

use super::processes;
use crate::cli::{Global, SessionsCommand, Which};
use crate::failure::Failure;
use crate::output;
use http::Method;
use serde_json::Value;
use signalbox_control::api::routes::SESSIONS;
use signalbox_control::table;
use std::process::ExitCode;

/// Does what was asked for.
pub(super) async fn run(global: &Global, command: SessionsCommand) -> Result<ExitCode, Failure> {
    match command {
        SessionsCommand::List { which } => list(global, &which).await?,
        SessionsCommand::Show { id, which } => {
            let (_, session) = processes::having(global, &which, &path(&id)?).await?;
            match global.json {
                true => output::json(&session)?,
                false => output::result(&whole(&session))?,
            }
        }
        SessionsCommand::End { id, which } => {
            let (process, _) = processes::having(global, &which, &path(&id)?).await?;
            let done = process.send(Method::DELETE, &path(&id)?, None).await?;
            match global.json {
                true => output::json(&done)?,
                false => output::result(&format!("session {} is ended\n", done["id"]))?,
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn path(id: &str) -> Result<String, Failure> {
    let plain = !id.is_empty() && id.chars().all(|char| char.is_ascii_alphanumeric() || char == '-' || char == '_');
    if plain { Ok(format!("{SESSIONS}/{id}")) } else { Err(Failure::Usage(format!("`{id}` is not a session"))) }
}

async fn list(global: &Global, which: &Which) -> Result<(), Failure> {
    let mut all = Vec::new();
    for process in processes::all(global, which)? {
        let sessions = process.send(Method::GET, SESSIONS, None).await?;
        all.extend(sessions.as_array().cloned().unwrap_or_default());
    }
    if global.json {
        return output::json(&Value::from(all));
    }
    if all.is_empty() {
        return output::result("No session is open.\n");
    }
    let headings = ["ID", "CLIENT", "REVISION", "WHO", "KIND", "AGE", "IDLE", "CALLS", "PID"];
    output::result(&table::render(&headings, &all.iter().map(row).collect::<Vec<_>>()))
}

fn row(session: &Value) -> Vec<String> {
    vec![
        session["id"].to_string(),
        client(session),
        word(session, "revision"),
        word(session, "principal"),
        word(session, "kind"),
        age(&session["age_ms"]),
        age(&session["idle_ms"]),
        session["in_flight"].to_string(),
        session["pid"].to_string(),
    ]
}

fn client(session: &Value) -> String {
    let part = |key: &str| session["client"][key].as_str().unwrap_or_default().to_owned();
    let text = format!("{} {}", part("name"), part("version"));
    if text.trim().is_empty() { "-".to_owned() } else { text.trim().to_owned() }
}

fn whole(session: &Value) -> String {
    let lines = [
        ("session", session["id"].to_string()),
        ("id of its client", word(session, "session")),
        ("client", client(session)),
        ("revision", word(session, "revision")),
        ("who", word(session, "principal")),
        ("state", word(session, "state")),
        ("open for", age(&session["age_ms"])),
        ("idle for", age(&session["idle_ms"])),
        ("process", session["pid"].to_string()),
    ];
    let mut text: String =
        lines.into_iter().map(|(name, value)| format!("{name:<18}{}\n", table::harmless(&value))).collect();
    let row = |call: &Value| {
        let about = [word(call, "method"), word(call, "subject"), word(call, "backend"), age(&call["age_ms"])];
        about.to_vec()
    };
    let calls: Vec<_> = session["calls"].as_array().into_iter().flatten().map(row).collect();
    if !calls.is_empty() {
        text = format!("{text}\n{}", table::render(&["CALL", "ABOUT", "BACKEND", "FOR"], &calls));
    }
    text
}

fn word(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or("-").to_owned()
}

/// A time in the largest unit that fits.
fn age(millis: &Value) -> String {
    match millis.as_u64().unwrap_or(0) / 1000 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}
