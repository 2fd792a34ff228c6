//! Processes that run with this data folder, queried at their control sockets.

use super::finding::Finding;
use super::{auditing, recording};
use crate::api::routes;
use crate::control_socket;
use serde_json::Value;
use signalbox_assembly::data_dir::run_folder;
use std::path::Path;

const CHECK: &str = "control";

/// Queries every process. Returns the states of those that answered, and the findings.
pub(super) async fn check(data_dir: &Path) -> (Vec<Value>, Vec<Finding>) {
    let folder = run_folder(data_dir);
    let shown = folder.display().to_string();
    let sockets = match control_socket::sockets(&folder) {
        Ok(sockets) => sockets,
        Err(error) => {
            let advice = format!("let this user read the folder: `chmod u+rwx {shown}`");
            let finding = Finding::warning(CHECK, format!("cannot look for control sockets: {error}"), advice);
            return (Vec::new(), vec![finding.at(shown)]);
        }
    };
    let (mut running, mut findings) = (Vec::new(), Vec::new());
    for socket in &sockets {
        let told = control_socket::ask(socket, routes::STATUS).await;
        match told.map(|bytes| serde_json::from_slice::<Value>(&bytes)) {
            Ok(Ok(status)) => {
                findings.push(process(&status));
                findings.extend(outdated(&status));
                findings.extend(recording::from_status(&status));
                findings.extend(auditing::from_status(&status));
                findings.extend(broken_glass(&status));
                running.push(status);
            }
            Ok(Err(error)) => findings.push(unresponsive(socket, &format!("its answer is not JSON ({error})"))),
            Err(error) => findings.push(unresponsive(socket, &error.to_string())),
        }
    }
    if sockets.is_empty() {
        findings.push(Finding::note(CHECK, "no signalbox runs with this data folder").at(shown));
    }
    (running, findings)
}

fn process(status: &Value) -> Finding {
    let text = |key: &str| status[key].as_str().unwrap_or("-");
    let found = format!("`{}` runs (pid {}, version {})", text("command"), status["pid"], text("version"));
    let own = env!("CARGO_PKG_VERSION");
    if text("version") == own {
        return Finding::ok(CHECK, found);
    }
    let advice = format!("start it again to run the version {own} that is installed");
    Finding::warning(CHECK, format!("{found}, which is not the version {own} of this program"), advice)
}

/// Returns a finding if the process has refused the present configuration file.
fn outdated(status: &Value) -> Option<Finding> {
    let text = format!(
        "the process {} runs an older configuration: {}",
        status["pid"],
        status["reload"]["last_error"].as_str()?
    );
    Some(Finding::warning(
        "config",
        text,
        "change the file as the message says and run `signalbox reload`, or start the process again",
    ))
}

/// Returns a finding for each active break-glass grant.
fn broken_glass(status: &Value) -> Vec<Finding> {
    let all = status["break_glass"].as_array().into_iter().flatten();
    let told = |glass: &Value| {
        let word = |key: &str| glass[key].as_str().unwrap_or("-").to_owned();
        let text = format!(
            "`{}` may use everything but what is switched off until {}, by {}: {}",
            word("to"),
            word("until"),
            word("by"),
            word("because")
        );
        Finding::warning("permissions", text, "`signalbox grant revoke` ends it once the emergency is over")
    };
    all.map(told).collect()
}

fn unresponsive(socket: &Path, why: &str) -> Finding {
    let advice = "the process behind it hangs or is ending; check its log, and end it if this persists";
    Finding::warning(CHECK, format!("a process does not report its state: {why}"), advice)
        .at(socket.display().to_string())
}
