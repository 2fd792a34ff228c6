//! `signalbox grant`: temporary permissions of callers.

use super::processes;
use super::switch::governing;
use crate::cli::{BreakGlassArgs, Global, GrantCommand};
use crate::commands::{administration, data_dir};
use crate::failure::Failure;
use crate::output;
use http::Method;
use serde_json::{Value, json};
use signalbox_assembly::grants::GrantFile;
use signalbox_control::api::routes::GRANTS;
use signalbox_control::table;
use signalbox_runtime::clock::unix_millis;
use signalbox_wire::hex::hex;
use signalbox_wire::timestamp;
use std::process::ExitCode;

pub(super) async fn run(global: &Global, command: GrantCommand) -> Result<ExitCode, Failure> {
    match command {
        GrantCommand::List => list(global).await,
        GrantCommand::Add(args) => {
            let to = args.terms.to.clone();
            let added = add(global, args.tools, args.terms, false).await;
            administration::tried_alone(global, ("grant.add", &to), added)
        }
        GrantCommand::BreakGlass(args) => {
            let to = args.to.clone();
            administration::tried_alone(global, ("grant.add", &to), add(global, Vec::new(), args, true).await)
        }
        GrantCommand::Revoke { id } => revoke(global, &id).await,
    }
}

async fn list(global: &Global) -> Result<ExitCode, Failure> {
    let all = match governing(global).await?.first() {
        Some(process) => process.send(Method::GET, GRANTS, None).await?,
        None => json!(GrantFile::of(&data_dir(global)?).load()?.counting(true, unix_millis())),
    };
    if global.json {
        output::json(&all)?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> = all.as_array().into_iter().flatten().map(row).collect();
    let text = match rows.is_empty() {
        true => "there are no grants that end by themselves\n".to_owned(),
        false => table::render(&["ID", "WHO", "MAY USE", "UNTIL", "BY", "WHY"], &rows),
    };
    output::result(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn row(grant: &Value) -> Vec<String> {
    let word = |key: &str| table::harmless(grant[key].as_str().unwrap_or_default());
    let tools = grant["tools"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let tools = match grant["break_glass"] == true {
        true => "everything (break-glass)".to_owned(),
        false => table::harmless(&tools.collect::<Vec<_>>().join(" ")),
    };
    let until = timestamp::rfc3339_millis(grant["until"].as_u64().unwrap_or(0));
    vec![word("id"), word("to"), tools, until, word("by"), word("because")]
}

/// Adds one grant to every running process, under the same id. The process decides whether the grant is allowed, so at
/// least one must run.
async fn add(
    global: &Global,
    tools: Vec<String>,
    args: BreakGlassArgs,
    break_glass: bool,
) -> Result<ExitCode, Failure> {
    let mut id = [0; 8];
    getrandom::fill(&mut id).map_err(|error| Failure::Refused(format!("there is no randomness: {error}")))?;
    let wanted = json!({
        "id": hex(&id),
        "to": args.to,
        "tools": tools,
        "for": args.lasting,
        "because": args.because,
        "by": processes::user(),
        "break_glass": break_glass,
    });
    let mut granted = None;
    for process in governing(global).await? {
        granted = Some(process.send(Method::POST, GRANTS, Some(wanted.to_string())).await?);
    }
    let Some(granted) = granted else {
        return Err(Failure::NothingRuns(data_dir(global)?));
    };
    if global.json {
        output::json(&granted)?;
        return Ok(ExitCode::SUCCESS);
    }
    let what = if break_glass { "everything but what is switched off".to_owned() } else { tools_of(&granted) };
    let until = timestamp::rfc3339_millis(granted["until"].as_u64().unwrap_or(0));
    output::say(table::harmless(&format!("`{}` may use {what} until {until} ({})", args.to, hex(&id))));
    Ok(ExitCode::SUCCESS)
}

fn tools_of(granted: &Value) -> String {
    let tools = granted["tools"].as_array().into_iter().flatten().filter_map(Value::as_str);
    tools.collect::<Vec<_>>().join(", ")
}

async fn revoke(global: &Global, id: &str) -> Result<ExitCode, Failure> {
    let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_id {
        let why = "a grant is named by its id; `signalbox grant list` shows it";
        administration::note_nothing_done(global, ("grant.revoke", id), why);
        return Err(Failure::Usage(why.to_owned()));
    }
    let processes = governing(global).await?;
    let mut found = false;
    let why = format!("there is no grant `{id}`; `signalbox grant list` shows all");
    if processes.is_empty() {
        let mut revoked = None;
        GrantFile::of(&data_dir(global)?).change(|all| {
            revoked = all.revoke(id, unix_millis());
            Ok(())
        })?;
        found = revoked.is_some();
        match revoked {
            Some(grant) => administration::note(global, ("grant.revoke", id), Some(json!(grant)), None),
            None => administration::note_nothing_done(global, ("grant.revoke", id), &why),
        }
    }
    for process in &processes {
        found |= process.send(Method::DELETE, &format!("{GRANTS}/{id}"), None).await?["revoked"] == true;
    }
    if !found {
        return Err(Failure::Usage(why));
    }
    output::say(format!("the grant `{id}` is over"));
    Ok(ExitCode::SUCCESS)
}
