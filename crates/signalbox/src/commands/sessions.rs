//! `signalbox sessions`: lists, shows and ends the sessions of clients.

use super::administration;
use super::processes::{self, Act};
use crate::cli::{Global, SessionsCommand, Which};
use crate::failure::Failure;
use crate::output;
use http::Method;
use serde_json::Value;
use signalbox_control::api::routes::SESSIONS;
use signalbox_control::table;
use std::process::ExitCode;
use std::time::Duration;

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
        SessionsCommand::Cleanup { idle, dry_run, which } => cleanup(global, &which, idle, dry_run).await?,
        SessionsCommand::End { id, which } => {
            let done = administration::tried_alone(global, ("session.end", &id), end(global, &which, &id).await)?;
            match global.json {
                true => output::json(&done)?,
                false => output::result(&format!("session {} is ended\n", done["id"]))?,
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn end(global: &Global, which: &Which, id: &str) -> Result<Value, Failure> {
    let path = path(id)?;
    let act = || Act { method: Method::DELETE, path: path.clone(), body: None };
    let (process, _) = processes::having_for(global, which, &path, act()).await?;
    process.send(Method::DELETE, &path, None).await
}

/// Ends the sessions that have been idle for so long (SO-1).
async fn cleanup(global: &Global, which: &Which, idle: Duration, dry_run: bool) -> Result<(), Failure> {
    let mut ended = Vec::new();
    for process in processes::all(global, which)? {
        let sessions = process.send(Method::GET, SESSIONS, None).await?;
        let all = sessions.as_array().cloned().unwrap_or_default();
        for session in all.into_iter().filter(|session| is_idle(session, idle)) {
            if !dry_run {
                process.send(Method::DELETE, &path(&session["id"].to_string())?, None).await?;
            }
            ended.push(session);
        }
    }
    if global.json {
        return output::json(&Value::from(ended));
    }
    let mut text: String = ended.iter().map(|session| format!("{} {}\n", session["id"], client(session))).collect();
    let what = if dry_run { "would be ended" } else { "ended" };
    text.push_str(&format!("{} {what}\n", output::counted(ended.len() as u64, "session")));
    output::result(&text)
}

/// Returns `true` for a session without calls in flight that has been idle for at least `least`.
fn is_idle(session: &Value, least: Duration) -> bool {
    let idle = session["idle_ms"].as_u64().map(Duration::from_millis);
    session["in_flight"].as_u64() == Some(0) && idle.is_some_and(|idle| idle >= least)
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
        ("ends", word(session, "expires_at")),
        ("trust", word(&session["permissions"], "trust_level")),
        ("roles", list_of(&session["permissions"]["roles"])),
        ("scopes", list_of(&session["permissions"]["scopes"])),
        ("resources", list_of(&session["permissions"]["resources"])),
        ("limits", limits(&session["rate_limits"])),
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

fn list_of(value: &Value) -> String {
    let all: Vec<&str> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if all.is_empty() { "-".to_owned() } else { all.join(", ") }
}

/// Formats the remaining requests of each limit.
fn limits(value: &Value) -> String {
    let one = |limit: &Value| format!("{} of {} in {} s", limit["left"], limit["limit"], limit["per_seconds"]);
    let all: Vec<String> = value.as_array().into_iter().flatten().map(one).collect();
    if all.is_empty() { "-".to_owned() } else { all.join(", ") }
}

fn word(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or("-").to_owned()
}

/// Formats a duration in the largest unit that fits.
fn age(millis: &Value) -> String {
    match millis.as_u64().unwrap_or(0) / 1000 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// `cleanup` ends sessions that were idle for long enough, and none that has a call in flight.
    /// Proves SO-1.
    #[test]
    fn only_idle_sessions_without_a_call_are_cleaned_up() {
        let idle = |idle_ms: u64, in_flight: u64| {
            is_idle(&json!({"idle_ms": idle_ms, "in_flight": in_flight}), Duration::from_secs(60))
        };
        assert!(idle(60_000, 0));
        assert!(!idle(59_999, 0));
        assert!(!idle(120_000, 1));
        assert!(!is_idle(&json!({"in_flight": 0}), Duration::ZERO), "its age is not known");
    }
}
