//! `signalbox switch`: turns tools, backends and callers off immediately.

use super::processes::{self, Process};
use crate::cli::{Global, SwitchArgs, SwitchCommand, Which};
use crate::commands::{administration, data_dir, load};
use crate::failure::Failure;
use crate::output;
use http::Method;
use serde_json::{Value, json};
use signalbox_assembly::permissions::{SetSwitch, SwitchFile};
use signalbox_assembly::{name_check, pattern_check};
use signalbox_config::Overrides;
use signalbox_control::api::routes::{LIFT_SWITCH, SWITCHES};
use signalbox_control::table;
use signalbox_govern::permissions::SwitchOffReason;
use signalbox_runtime::clock::unix_millis;
use signalbox_wire::timestamp;
use std::process::ExitCode;

pub(super) async fn run(global: &Global, command: SwitchCommand) -> Result<ExitCode, Failure> {
    match command {
        SwitchCommand::List => list(global).await,
        SwitchCommand::Kill(args) => set(global, &args, SwitchOffReason::Killed).await,
        SwitchCommand::Quarantine(args) => set(global, &args, SwitchOffReason::Quarantined).await,
        SwitchCommand::Lift(args) => lift(global, &args).await,
    }
}

/// Returns the running processes that act as gateways. `wrap` and `proxy` without rules only forward bytes.
pub(super) async fn governing(global: &Global) -> Result<Vec<Process>, Failure> {
    let mut all = Vec::new();
    for process in processes::any(global, &Which::default())? {
        if !process.is_transparent().await? {
            all.push(process);
        }
    }
    Ok(all)
}

async fn list(global: &Global) -> Result<ExitCode, Failure> {
    let all = match governing(global).await?.first() {
        Some(process) => process.send(Method::GET, SWITCHES, None).await?,
        None => json!(SwitchFile::of(&data_dir(global)?).load()?),
    };
    if global.json {
        output::json(&all)?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> = all.as_array().into_iter().flatten().map(row).collect();
    let text = match rows.is_empty() {
        true => "nothing is switched off\n".to_owned(),
        false => table::render(&["WHAT", "IS", "SINCE", "BY", "WHY"], &rows),
    };
    output::result(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn row(switch: &Value) -> Vec<String> {
    let word = |key: &str| table::harmless(switch[key].as_str().unwrap_or_default());
    let what = if switch["principal"] == true { format!("caller {}", word("pattern")) } else { word("pattern") };
    let since = switch["since"].as_u64().filter(|since| *since > 0).map(timestamp::rfc3339_millis);
    vec![what, word("off"), since.unwrap_or_else(|| "-".to_owned()), word("by"), word("reason")]
}

async fn set(global: &Global, args: &SwitchArgs, off: SwitchOffReason) -> Result<ExitCode, Failure> {
    let switch = SetSwitch {
        pattern: args.pattern.clone(),
        principal: args.principal,
        off: off.word().to_owned(),
        reason: args.reason.clone(),
        by: processes::user().unwrap_or_default(),
        since: unix_millis(),
    };
    let processes = governing(global).await?;
    let mut warning = None;
    for process in &processes {
        let answer = process.send(Method::POST, SWITCHES, Some(json!(switch).to_string())).await?;
        warning = answer["warning"].as_str().map(str::to_owned);
    }
    if processes.is_empty() {
        if !switch.principal
            && let Ok(loaded) = load(global, Overrides::default())
        {
            let catalog = name_check::kept_catalog(&loaded.config);
            let doubt = pattern_check::unmatched_switch(&loaded.config, &catalog, &switch.pattern);
            warning = doubt.map(|doubt| format!("it matches nothing that is configured: {doubt}"));
        }
        SwitchFile::of(&data_dir(global)?).change(|all| all.set(switch.clone()))?;
        administration::note(global, ("switch.set", &switch.pattern), None, Some(json!(switch)));
    }
    output::say(format!("`{}` is {}", table::harmless(&args.pattern), off.word()));
    if let Some(warning) = warning {
        output::say(format_args!("warning: {}", table::harmless(&warning)));
    }
    Ok(ExitCode::SUCCESS)
}

async fn lift(global: &Global, args: &SwitchArgs) -> Result<ExitCode, Failure> {
    let processes = governing(global).await?;
    let mut found = false;
    let why = format!("`{}` is not switched off; `signalbox switch list` shows all", table::harmless(&args.pattern));
    for process in &processes {
        let body = json!({"pattern": args.pattern, "principal": args.principal}).to_string();
        found |= process.send(Method::POST, LIFT_SWITCH, Some(body)).await?["lifted"] == true;
    }
    if processes.is_empty() {
        SwitchFile::of(&data_dir(global)?).change(|all| {
            found = all.lift(&args.pattern, args.principal);
            Ok(())
        })?;
        let (action, after) = (("switch.lift", args.pattern.as_str()), json!({"principal": args.principal}));
        match found {
            true => administration::note(global, action, None, Some(after)),
            false => administration::note_nothing_done(global, action, &why),
        }
    }
    if !found {
        return Err(Failure::Usage(why));
    }
    output::say(format!("`{}` is on again", table::harmless(&args.pattern)));
    Ok(ExitCode::SUCCESS)
}
