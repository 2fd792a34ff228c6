//! `signalbox doctor`: reports problems and their remedies.

use crate::cli::Global;
use crate::failure::Failure;
use crate::output;
use serde_json::json;
use signalbox_config::{ConfigLocation, Environment, Overrides};
use signalbox_control::doctor::{DoctorInput, examine, has_problems, report};
use signalbox_control::terminal::OutputStyle;
use std::path::Path;
use std::process::ExitCode;

/// Examines the whole installation. Exits with 1 if something does not work.
pub(super) async fn run(global: &Global) -> Result<ExitCode, Failure> {
    let environment = Environment::read(std::env::vars_os());
    let named = environment.as_ref().ok().and_then(|environment| environment.config.clone());
    let found = ConfigLocation::find(global.config.as_deref(), named.as_deref(), Path::new("."), &super::env);
    let loaded = environment.and_then(|read| super::loader_of(global, Overrides::default(), read).load());
    let findings = examine(DoctorInput { found: &found, loaded, env: &super::env }).await;
    let problems = has_problems(&findings);
    if global.json {
        let answer = json!({"ok": !problems, "version": env!("CARGO_PKG_VERSION"), "findings": findings});
        output::json(&answer)?;
    } else {
        output::styled(&report::report(&findings, OutputStyle::of_stdout()))?;
    }
    Ok(if problems { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
