//! `signalbox check`: validates the configuration.

use crate::cli::Global;
use crate::failure::Failure;
use crate::front_tls::FrontSecurity;
use crate::output;
use serde_json::json;
use signalbox_assembly::assemble;
use signalbox_assembly::name_check;
use signalbox_config::{CheckedConfig, Config, Overrides};
use signalbox_control::doctor;
use signalbox_control::table;
use signalbox_engine::Principal;
use signalbox_oauth_client::page_host::PageHost;
use std::process::ExitCode;

/// Reads and assembles everything, and starts nothing.
pub(super) fn run(global: &Global) -> Result<ExitCode, Failure> {
    let loaded = super::load(global, Overrides::default())?;
    // Assembling opens the demo folder and parses the addresses, but starts nothing.
    assemble::assemble(
        &loaded.config,
        Principal::anonymous(),
        assemble::StateFiles::default(),
        None,
        PageHost::Person,
    )?;
    FrontSecurity::check(&loaded.config)?;
    let warnings = warnings(&loaded);
    if global.json {
        let answer = json!({
            "ok": true,
            "config": loaded.config.source,
            "data_dir": loaded.config.data_dir,
            "backends": names(&loaded.config, false),
            "disabled": names(&loaded.config, true),
            "warnings": warnings,
        });
        output::json(&answer)?;
    } else {
        for warning in &warnings {
            output::say(format_args!("warning: {}", table::harmless(warning)));
        }
        output::result(&summary(&loaded.config))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Lists settings that are valid, but probably not intended.
fn warnings(loaded: &CheckedConfig) -> Vec<String> {
    let mut all: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    for program in doctor::bad_programs(&loaded.config, &super::env) {
        let place = program.place.map(|place| format!("{place}: ")).unwrap_or_default();
        let advice = program.advice.map(|advice| format!("; {advice}")).unwrap_or_default();
        all.push(format!("{place}{}{advice}", program.found));
    }
    let catalog = name_check::kept_catalog(&loaded.config);
    all.extend(name_check::warnings(&loaded.config, &catalog));
    all.extend(name_check::collisions(&catalog));
    all
}

fn summary(config: &Config) -> String {
    let source = config.source.as_ref().map_or_else(
        || "no configuration file, so the defaults apply".to_owned(),
        |file| format!("{} is fine", file.display()),
    );
    let backends = match names(config, false) {
        names if names.is_empty() && assemble::uses_demo(config) => {
            "no backends, so the demo tools are offered".to_owned()
        }
        names if names.is_empty() => "no backends".to_owned(),
        names => format!("backends {}", names.join(", ")),
    };
    let disabled = match names(config, true) {
        names if names.is_empty() => String::new(),
        names => format!("; disabled {}", names.join(", ")),
    };
    format!("{source}: {backends}{disabled}\n")
}

fn names(config: &Config, disabled: bool) -> Vec<&str> {
    config.backends.iter().filter(|one| one.disabled == disabled).map(|one| one.name.as_str()).collect()
}
