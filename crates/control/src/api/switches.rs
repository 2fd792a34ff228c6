//! `/api/v1/switches`: kill switches and quarantine, effective at once and until lifted.

use super::{ApiState, bad, json as read, ok, who};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use signalbox_assembly::pattern_check;
use signalbox_assembly::permissions::{SetSwitch, SetSwitches, SwitchFile, SwitchFileFault};
use signalbox_govern::permissions::SwitchOffReason;
use signalbox_runtime::clock::unix_millis;
use signalbox_transport::router::{HandlerResult, RouteFault, RoutedRequest};
use std::sync::Arc;

/// Maximum length of a pattern or reason, in bytes.
const MAX_TEXT: usize = 1024;

/// Body of a request that lifts a switch.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LiftRequest {
    pattern: String,
    #[serde(default)]
    principal: bool,
}

pub(super) async fn list(served: Arc<ApiState>, _: RoutedRequest) -> HandlerResult {
    follow(&served).await;
    let config = served.reloader.current();
    let set = SwitchFile::of(&config.data_dir).load().map_err(|fault| failed(&fault))?;
    let off = &config.permissions.kill_switch;
    let configured = |patterns: &[String], principal: bool, off: SwitchOffReason| -> Vec<Value> {
        let shown = |pattern: &String| json!({"pattern": pattern, "principal": principal, "off": off.word(), "by": "configuration"});
        patterns.iter().map(shown).collect()
    };
    let mut all = configured(&off.tools, false, SwitchOffReason::Killed);
    all.extend(configured(&off.backends, false, SwitchOffReason::Killed));
    all.extend(configured(&off.principals, true, SwitchOffReason::Killed));
    all.extend(configured(&off.quarantine, false, SwitchOffReason::Quarantined));
    all.extend(set.0.iter().map(|switch| json!(switch)));
    Ok(ok(&all.into()))
}

pub(super) async fn set(served: Arc<ApiState>, request: RoutedRequest) -> HandlerResult {
    let caller = request.caller.principal().as_str().to_owned();
    let mut switch: SetSwitch = read(request.body).await?;
    if switch.pattern.is_empty() || switch.pattern.len() > MAX_TEXT || switch.reason.len() > MAX_TEXT {
        return Err(bad("`pattern` needs 1 to 1024 characters, `reason` at most 1024"));
    }
    if SwitchOffReason::of(&switch.off).is_none() {
        return Err(bad("`off` must be killed or quarantined"));
    }
    switch.by = who(&caller, Some(switch.by).filter(|by| !by.is_empty()));
    switch.since = unix_millis();
    tracing::warn!(pattern = switch.pattern, off = switch.off, by = switch.by, reason = switch.reason, "switched off");
    change(&served, |all| all.set(switch.clone())).await?;
    let mut answer = json!(switch);
    let catalog = Arc::clone(&served.app().gateway.catalog.snapshot());
    let doubt = |pattern| pattern_check::unmatched_switch(&served.reloader.current(), &catalog, pattern);
    // The names of callers are not known beforehand.
    if !switch.principal
        && let Some(doubt) = doubt(&switch.pattern)
    {
        answer["warning"] = json!(format!("it matches nothing now: {doubt}"));
    }
    Ok(ok(&answer))
}

pub(super) async fn lift(served: Arc<ApiState>, request: RoutedRequest) -> HandlerResult {
    let caller = request.caller.principal().as_str().to_owned();
    let lifted: LiftRequest = read(request.body).await?;
    let mut found = false;
    change(&served, |all| {
        found = all.lift(&lifted.pattern, lifted.principal);
        Ok(())
    })
    .await?;
    if found {
        tracing::warn!(pattern = lifted.pattern, by = caller, "switched on again");
    }
    Ok(ok(&json!({"pattern": lifted.pattern, "lifted": found})))
}

/// Enforces what the file says. Rewrites a deleted file first, because its absence must not look as if nothing were
/// switched off.
async fn follow(served: &ApiState) {
    let reloader = Arc::clone(&served.reloader);
    let _ = tokio::task::spawn_blocking(move || reloader.follow_govern_files()).await;
}

/// Writes the switches to their file and enforces them.
async fn change(
    served: &ApiState,
    change: impl FnOnce(&mut SetSwitches) -> Result<(), SwitchFileFault>,
) -> Result<(), RouteFault> {
    follow(served).await;
    let rules = served.reloader.current();
    SwitchFile::of(&rules.data_dir).change(change).map_err(|fault| failed(&fault))?;
    served.app().govern.follow_written(&rules, &served.app().gateway);
    Ok(())
}

fn failed(fault: &SwitchFileFault) -> RouteFault {
    let status = match fault {
        SwitchFileFault::TooMany => StatusCode::TOO_MANY_REQUESTS,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    RouteFault::new(status, fault)
}
