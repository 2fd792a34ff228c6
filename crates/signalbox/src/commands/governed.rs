//! `wrap --rules` and `proxy --rules`: a full gateway with one backend, no longer transparent.

use super::{block_on, data_dir, load, loader, serve, stdio};
use crate::ad_hoc::{self, AdHocFile};
use crate::cli::{Global, ProxyArgs, TapeTo, WrapArgs};
use crate::failure::Failure;
use crate::output;
use signalbox_assembly::data_dir::DataDir;
use signalbox_assembly::logging;
use signalbox_config::{Overrides, RecordConfig};
use std::path::Path;
use std::process::ExitCode;

/// Runs as `stdio` does, with the wrapped command as the only backend.
pub(super) fn wrap(global: &Global, args: &WrapArgs, rules: &Path) -> Result<ExitCode, Failure> {
    let names: Vec<_> = std::env::vars_os().map(|(name, _)| name).collect();
    let record = Some(record(global, &args.to)?);
    let (file, global) = prepare(global, &ad_hoc::wrapped(&args.command, &names, rules)?)?;
    let loader = loader(&global, Overrides { record, ..Overrides::default() })?;
    let loaded = loader.load()?;
    let _logs = logging::start(loaded.config.log_level, global.json);
    announce(rules);
    let ended = block_on(stdio::run(loaded, loader));
    drop(file);
    ended
}

/// Runs as `serve` does, with the address as the only backend.
pub(super) fn proxy(global: &Global, args: &ProxyArgs, rules: &Path) -> Result<ExitCode, Failure> {
    let record = Some(record(global, &args.to)?);
    let (file, global) = prepare(global, &ad_hoc::proxied(&args.url, rules)?)?;
    let loader = loader(&global, Overrides { listen: Some(args.listen), record, ..Overrides::default() })?;
    let loaded = loader.load()?;
    let _logs = logging::start(loaded.config.log_level, global.json);
    announce(rules);
    let ended = block_on(serve::run(loaded, loader, global.json));
    drop(file);
    ended
}

/// Returns the recording settings: the configured ones, overridden by the command line.
fn record(global: &Global, to: &TapeTo) -> Result<RecordConfig, Failure> {
    let record = load(global, Overrides::default())?.config.record;
    let file = to.tape.as_deref().map(std::path::absolute).transpose();
    let file = file.map_err(|error| Failure::File { path: to.tape.clone().unwrap_or_default(), error })?;
    Ok(RecordConfig { enabled: !to.no_tape && (record.enabled || file.is_some()), file, ..record })
}

/// Writes the configuration to a private file, and returns global flags that point to it.
pub(super) fn prepare(global: &Global, text: &str) -> Result<(AdHocFile, Global), Failure> {
    let data_dir = DataDir::prepare(&data_dir(global)?)?;
    let file = AdHocFile::write(&data_dir.run()?, text)?;
    let (config, data_dir) = (Some(file.path().to_owned()), Some(data_dir.path().to_owned()));
    Ok((file, Global { config, data_dir, ..global.clone() }))
}

fn announce(rules: &Path) {
    output::say(format_args!("signalbox: applying the rules in {}, so messages may be changed", rules.display()));
}
