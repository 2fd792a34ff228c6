//! `signalbox reload`: has the running processes read their configuration again.

use super::administration;
use crate::cli::Global;
use crate::failure::Failure;
use crate::output;
use serde_json::Value;
use signalbox_control::api::routes;
use signalbox_control::control_socket::{AskError, ProcessAddress, tell};
use signalbox_control::table;
use std::process::ExitCode;

/// Reloads every process of this data folder, and prints each result.
pub(super) async fn run(global: &Global) -> Result<ExitCode, Failure> {
    let (data_dir, sockets) = super::running(global)?;
    if sockets.is_empty() {
        return administration::tried_alone(global, ("config.reload", ""), Err(Failure::NothingRuns(data_dir)));
    }
    let (mut all, mut refused) = (Vec::new(), false);
    for socket in sockets {
        match one(&socket).await {
            Ok(answer) => {
                refused |= answer["ok"] != true;
                all.push(answer);
            }
            Err(why) => {
                refused = true;
                output::complain(format_args!("{socket}: {why}"));
            }
        }
    }
    if global.json {
        output::json(&Value::from(all))?;
    } else {
        for answer in &all {
            show(answer)?;
        }
    }
    Ok(if refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn show(answer: &Value) -> Result<(), Failure> {
    let word = |key: &str| table::harmless(answer[key].as_str().unwrap_or("-"));
    let who = format!("{} (pid {})", word("command"), answer["pid"]);
    for warning in answer["summary"]["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        output::say(format_args!("{who}: warning: {}", table::harmless(warning)));
    }
    if answer["ok"] == true {
        return output::result(&format!("{who}: {}\n", word("text")));
    }
    let what = match answer["partly"] == true {
        true => "running an older configuration in part",
        false => "keeping the previous configuration",
    };
    output::complain(format_args!("{who}: {what}: {}", word("error")));
    Ok(())
}

/// Reason that a process did not report the result of its reload.
#[derive(Debug, thiserror::Error)]
enum ReloadFailure {
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error("its answer is not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
}

async fn one(socket: &ProcessAddress) -> Result<Value, ReloadFailure> {
    Ok(serde_json::from_slice(&tell(socket, routes::RELOAD).await?)?)
}
