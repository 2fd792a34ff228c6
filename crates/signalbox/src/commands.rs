//! Dispatches each command to its module, and holds the helpers that several commands share.

mod administration;
mod api_keys;
mod audit;
mod backtest;
mod check;
mod completions;
mod credentials;
mod doctor;
mod editor;
mod governed;
mod grant;
mod guard;
mod hold;
mod import;
mod login;
mod man;
mod policy;
mod processes;
mod proxy;
mod relay;
mod reload;
mod replay;
mod rules;
mod rules_edit;
pub mod seal;
pub mod serve;
mod sessions;
mod status;
pub mod stdio;
mod switch;
mod tape;
mod tool_pins;
mod tools;
mod users;
mod watch;
mod wrap;

use crate::cli::{Cli, CliCommand, ConfigCommand, Global, ServeArgs};
use crate::failure::Failure;
use crate::output;
use serde_json::json;
use signalbox_assembly::data_dir::run_folder;
use signalbox_assembly::logging;
use signalbox_config::loader::Loader;
use signalbox_config::loops;
use signalbox_config::{CheckedConfig, Environment, LogVerbosity, Overrides, reference};
use signalbox_control::control_socket::{self, ProcessAddress};
use std::future::Future;
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs the command that was parsed.
///
/// # Errors
/// If the command fails.
pub fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let mut global = cli.global;
    // An empty variable counts as not set, as for the variables of the configuration.
    global.url = global.url.filter(|url| !url.is_empty());
    global.key = global.key.filter(|key| !key.is_empty());
    match cli.command.unwrap_or_else(|| CliCommand::Serve(ServeArgs::default())) {
        CliCommand::Serve(args) => {
            let loader = loader(&global, Overrides { listen: args.listen, ..Overrides::default() })?;
            refuse_inside_itself(&loader)?;
            let loaded = loader.load()?;
            let _logs = logging::start(loaded.config.log_level, global.json);
            block_on(serve::run(loaded, loader, global.json))
        }
        CliCommand::Stdio => {
            let loader = loader(&global, Overrides::default())?;
            refuse_inside_itself(&loader)?;
            let loaded = loader.load()?;
            let _logs = logging::start(loaded.config.log_level, global.json);
            block_on(stdio::run(loaded, loader))
        }
        CliCommand::Wrap(args) => {
            if let Some(rules) = &args.rules {
                return governed::wrap(&global, &args, rules);
            }
            let _logs = logging::start(global.log_level.unwrap_or(LogVerbosity::Warn), global.json);
            block_on(wrap::run(&global, args))
        }
        CliCommand::Proxy(args) => {
            if let Some(rules) = &args.rules {
                return governed::proxy(&global, &args, rules);
            }
            let _logs = logging::start(global.log_level.unwrap_or(LogVerbosity::Info), global.json);
            block_on(proxy::run(&global, args))
        }
        CliCommand::Tools { command } => quietly(&global, tools::run(&global, command)),
        CliCommand::Status(args) => quietly(&global, status::run(&global, &args)),
        CliCommand::Reload => quietly(&global, reload::run(&global)),
        CliCommand::Hold { command } => quietly(&global, hold::run(&global, command)),
        CliCommand::Watch(args) => quietly(&global, watch::run(&global, &args)),
        CliCommand::Sessions { command } => quietly(&global, sessions::run(&global, command)),
        CliCommand::Doctor => quietly(&global, doctor::run(&global)),
        CliCommand::Man(args) => man::run(&args),
        CliCommand::Tape { command } => tape::run(&global, command),
        CliCommand::Replay { command } => replay::run(&global, command),
        CliCommand::Backtest(args) => backtest::run(&global, &args),
        CliCommand::Rules { command } => rules::run(&global, command),
        CliCommand::Switch { command } => quietly(&global, switch::run(&global, command)),
        CliCommand::Grant { command } => quietly(&global, grant::run(&global, command)),
        CliCommand::Policy { command } => policy::run(&global, command),
        CliCommand::Guard { command } => quietly(&global, guard::run(&global, command)),
        CliCommand::Relay { command } => relay::run(command),
        CliCommand::Audit { command } => audit::run(&global, command),
        CliCommand::Keys { command } => api_keys::run(&global, command),
        CliCommand::Users { command } => users::run(&global, command),
        CliCommand::Seal { command } => seal::run(&global, command),
        CliCommand::Login(args) => {
            let (done, of) = (login::login(&global, &args), json!({"user": args.user}));
            administration::note_done(&global, done, ("backend.login", &args.backend), Some(of))
        }
        CliCommand::Logout(args) => {
            let (done, of) = (login::logout(&global, &args), json!({"user": args.user}));
            administration::note_done(&global, done, ("backend.logout", &args.backend), Some(of))
        }
        CliCommand::Check => check::run(&global),
        CliCommand::Import(args) => import::run(&args),
        CliCommand::Completions { shell } => completions::run(shell),
        CliCommand::Config { command: ConfigCommand::Reference } => {
            output::result(&reference::markdown())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Refuses to run a configuration as a backend of itself: each process would start another.
fn refuse_inside_itself(loader: &Loader) -> Result<(), Failure> {
    let Some(file) = loader.file() else { return Ok(()) };
    if !env(loops::INSIDE).is_some_and(|own| loops::is_inside(&own, &file)) {
        return Ok(());
    }
    let file = file.display();
    Err(Failure::Usage(format!(
        "{file}: one of its backends starts Signalbox with this file again; remove that backend"
    )))
}

/// Starts logging for a short-lived command. Its result is on standard output, so only errors are logged unless the
/// user asks for more.
fn quiet_logs(global: &Global) -> logging::Flusher {
    logging::start(global.log_level.unwrap_or(LogVerbosity::Error), global.json)
}

/// Runs a short-lived command to its end, with quiet logs.
fn quietly(global: &Global, command: impl Future<Output = Result<ExitCode, Failure>>) -> Result<ExitCode, Failure> {
    let _logs = quiet_logs(global);
    block_on(command)
}

/// Loads the configuration from the file, the environment and the flags.
fn load(global: &Global, flags: Overrides) -> Result<CheckedConfig, Failure> {
    Ok(loader(global, flags)?.load()?)
}

/// Returns the data folder and its running processes, or only the process at `--url`. Works even if the configuration
/// is invalid.
fn running(global: &Global) -> Result<(PathBuf, Vec<ProcessAddress>), Failure> {
    let (data_dir, bad) = loader(global, Overrides::default())?.data_dir()?;
    if let Some(url) = &global.url {
        return Ok((data_dir, vec![ProcessAddress::Web { url: url.clone(), key: global.key.clone() }]));
    }
    let folder = run_folder(&data_dir);
    let sockets = control_socket::sockets(&folder).map_err(|error| Failure::File { path: folder, error })?;
    let sockets: Vec<ProcessAddress> = sockets.iter().map(ProcessAddress::from).collect();
    match bad {
        Some(error) if sockets.is_empty() => Err(error.into()),
        _ => Ok((data_dir, sockets)),
    }
}

/// Returns the data folder. Works even if the configuration file is invalid.
///
/// # Errors
/// If there is no place to keep state.
pub fn data_dir(global: &Global) -> Result<PathBuf, Failure> {
    Ok(loader(global, Overrides::default())?.data_dir()?.0)
}

/// Returns a loader for the configuration: file, environment, flags.
pub(crate) fn loader(global: &Global, flags: Overrides) -> Result<Loader, Failure> {
    Ok(loader_of(global, flags, Environment::read(std::env::vars_os())?))
}

fn loader_of(global: &Global, flags: Overrides, environment: Environment) -> Loader {
    let flags = Overrides { data_dir: global.data_dir.clone(), log_level: global.log_level, ..flags };
    let overrides = flags.over(environment.overrides);
    Loader::new(global.config.clone(), Environment { overrides, ..environment }, env)
}

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Blocks on an asynchronous command. Threads that still block on a pipe at the end are left behind: nothing can wake
/// them, and the process is about to exit.
fn block_on(command: impl Future<Output = Result<ExitCode, Failure>>) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::Start)?;
    let outcome = runtime.block_on(command);
    runtime.shutdown_background();
    outcome
}
