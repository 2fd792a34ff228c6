//! `signalbox tools`: lists and calls the tools of the backends, without any client.

use super::processes::{self, Process};
use super::tool_pins;
use super::{administration, credentials};
use crate::cli::{From, Global, Lock, ToolsCommand};
use crate::failure::Failure;
use crate::output;
use http::Method;
use serde_json::{Map, Value, json};
use signalbox_assembly::assemble::{App, StateFiles, assemble};
use signalbox_assembly::logging::log_warnings;
use signalbox_assembly::signals::Signals;
use signalbox_config::{BackendConfig, BackendTarget, Config, EraSetting, Overrides, ToolFilter, UrlTransport};
use signalbox_control::api::routes::{DEFINITIONS, STATUS, TOOLS};
use signalbox_control::control_socket;
use signalbox_control::definition_list::DefinitionList;
use signalbox_control::in_process_session::{InProcessSession, request_of};
use signalbox_control::remote_call;
use signalbox_control::table;
use signalbox_control::tool_list::{self, ToolList};
use signalbox_engine::standing::TrustLevel;
use signalbox_engine::{Caller, Principal, Proof};
use signalbox_oauth_client::page_host::PageHost;
use signalbox_transport::tls::BackTlsSpec;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Delay before the command reports which backends it waits for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Queries the running gateway, or starts the backends for this command and stops them again.
pub(super) async fn run(global: &Global, command: ToolsCommand) -> Result<ExitCode, Failure> {
    let arguments = arguments(&command)?;
    let (ToolsCommand::List { from }
    | ToolsCommand::Call { from, .. }
    | ToolsCommand::Pin { from, .. }
    | ToolsCommand::Diff { from, .. }
    | ToolsCommand::Approve { from, .. }) = &command;
    if from.fresh && global.url.is_some() {
        return Err(Failure::Usage("--fresh starts the backends here, and --url asks elsewhere; use one".to_owned()));
    }
    if let Some(process) = running(global, from).await? {
        return match &command {
            ToolsCommand::Call { name, .. } => {
                let result = request_of(&process.address, "tools/call", params(name, arguments), show_progress).await?;
                show_result(&result, global.json)
            }
            ToolsCommand::List { .. } => {
                let told = control_socket::ask_for_long(&process.address, TOOLS)
                    .await
                    .map_err(|error| process.failure(error))?;
                show_list(&ToolList::from_json(told), global.json)
            }
            ToolsCommand::Pin { .. } | ToolsCommand::Diff { .. } | ToolsCommand::Approve { .. } => {
                let told = control_socket::ask_for_long(&process.address, DEFINITIONS)
                    .await
                    .map_err(|error| process.failure(error))?;
                let told = serde_json::from_value(told);
                let list = told.map_err(|error| Failure::Usage(format!("the answer of the gateway: {error}")))?;
                let done = use_definitions(&command, &list, global)?;
                note_approval(global, &command);
                // Approvals apply at once, and not only when the gateway looks at the file again.
                if !matches!(command, ToolsCommand::Diff { .. }) {
                    credentials::announce(global).await;
                }
                Ok(done)
            }
        };
    }
    if let (ToolsCommand::Call { name, .. }, Some(url)) = (&command, &global.url) {
        let (url, call) = (address(url)?, params(name, arguments.clone()));
        let called = remote_call::call(&url, global.key.as_deref(), call, show_progress);
        if let Some(result) = called.await? {
            return show_result(&result, global.json);
        }
    }
    fresh(global, &command, arguments).await
}

fn address(url: &str) -> Result<http::Uri, Failure> {
    let bad = |why: &str| Failure::Usage(format!("--url must be like http://127.0.0.1:8080/mcp: {why}"));
    url.parse().map_err(|error: http::uri::InvalidUri| bad(&error.to_string()))
}

/// Selects the process to query: the only one of this data folder that runs with the named configuration file. Returns
/// `None` if the backends are to be started for this command.
async fn running(global: &Global, from: &From) -> Result<Option<Process>, Failure> {
    if from.fresh || global.url.is_some() {
        return Ok(None);
    }
    let mut fitting = Vec::new();
    for process in processes::any(global, &from.which)? {
        let fits = from.which.pid.is_some() || fits(&process, global.config.as_deref()).await?;
        fitting.extend(fits.then_some(process));
    }
    match fitting.len() {
        0 | 1 => Ok(fitting.pop()),
        _ => Err(processes::several(&fitting)),
    }
}

/// Returns `true` for a gateway that runs with this file, if one is named. Transparent proxies have no tools.
async fn fits(process: &Process, file: Option<&Path>) -> Result<bool, Failure> {
    let status = process.send(Method::GET, STATUS, None).await?;
    let Some(file) = file.filter(|_| !processes::is_transparent(&status)) else {
        return Ok(!processes::is_transparent(&status));
    };
    let same = |told: &str| match (Path::new(told).canonicalize(), file.canonicalize()) {
        (Ok(told), Ok(file)) => told == file,
        _ => Path::new(told) == file,
    };
    Ok(status["config"].as_str().is_some_and(same))
}

/// Parses the arguments of the tool.
fn arguments(command: &ToolsCommand) -> Result<Map<String, Value>, Failure> {
    let ToolsCommand::Call { args, pairs, .. } = command else { return Ok(Map::new()) };
    let mut arguments: Map<String, Value> =
        serde_json::from_str(args).map_err(|error| Failure::Usage(format!("--args must be a JSON object: {error}")))?;
    for pair in pairs {
        let Some((key, value)) = pair.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(Failure::Usage(format!("`{pair}` is not an argument; write KEY=VALUE, such as text=hello")));
        };
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        if arguments.insert(key.to_owned(), value).is_some() {
            return Err(Failure::Usage(format!("the argument `{key}` is given twice")));
        }
    }
    Ok(arguments)
}

async fn fresh(global: &Global, command: &ToolsCommand, arguments: Map<String, Value>) -> Result<ExitCode, Failure> {
    let config = configuration(global)?;
    // Use live lists only. The stored catalogue of another process may be out of date.
    let principal = Principal::local("tools");
    let app = assemble(&config, principal.clone(), StateFiles::default(), None, PageHost::Person)?;
    let mut signals = Signals::listen().map_err(Failure::Start)?;
    app.gateway.start();
    let asking = async {
        let mut pipe = InProcessSession::open(&app.gateway, Caller::of(principal, Proof::LocalUser, "stdio")).await?;
        match command {
            ToolsCommand::Call { name, .. } => {
                let called = pipe.request("tools/call", params(name, arguments), show_progress).await;
                let result = called.inspect_err(|_| warn_of_missing(&tool_list::missing(&app.gateway)))?;
                show_result(&result, global.json)
            }
            ToolsCommand::List { .. } => {
                show_list(&ToolList::ask(&mut pipe, &app.gateway, &config).await?, global.json)
            }
            ToolsCommand::Pin { .. } | ToolsCommand::Diff { .. } | ToolsCommand::Approve { .. } => {
                pipe.request("tools/list", json!({}), |_| ()).await?;
                let quarantine = app.govern.permissions.quarantine();
                let done = use_definitions(command, &DefinitionList::of(&app.gateway, &quarantine.tools()), global)?;
                note_approval(global, command);
                Ok(done)
            }
        }
    };
    let done = tokio::select! {
        done = asking => done,
        () = say_what_is_waited_for(&app) => Ok(ExitCode::SUCCESS),
        _ = signals.next() => Ok(ExitCode::from(super::serve::FORCED)),
    };
    app.shut_down(Duration::ZERO).await;
    done
}

fn params(name: &str, arguments: Map<String, Value>) -> Value {
    json!({"name": name, "arguments": arguments, "_meta": {"progressToken": 1}})
}

/// Carries out a command about definitions of tools.
fn use_definitions(command: &ToolsCommand, listed: &DefinitionList, global: &Global) -> Result<ExitCode, Failure> {
    warn_of_missing(&listed.missing);
    if !listed.ready {
        return Err(Failure::NoBackend);
    }
    let by = Principal::local(&std::env::var("USER").unwrap_or_else(|_| "unknown".to_owned())).to_string();
    let path = |lock: &Lock| match &lock.lock {
        Some(path) => Ok(path.clone()),
        None => Ok::<_, Failure>(super::load(global, Overrides::default())?.config.lock_file()),
    };
    match command {
        ToolsCommand::Pin { lock, .. } => tool_pins::pin(listed, &path(lock)?, &by),
        ToolsCommand::Approve { names, lock, .. } => tool_pins::approve(listed, names, &path(lock)?, &by),
        ToolsCommand::Diff { lock, .. } => tool_pins::diff(listed, &path(lock)?, global.json),
        ToolsCommand::List { .. } | ToolsCommand::Call { .. } => Ok(ExitCode::SUCCESS),
    }
}

/// Records an approval in the audit log.
fn note_approval(global: &Global, command: &ToolsCommand) {
    let (action, target) = match command {
        ToolsCommand::Pin { .. } => ("tool.pin", "*".to_owned()),
        ToolsCommand::Approve { names, .. } => ("tool.approve", names.join(", ")),
        _ => return,
    };
    administration::note(global, (action, &target), None, None);
}

fn show_list(tools: &ToolList, json: bool) -> Result<ExitCode, Failure> {
    warn_of_missing(tools.missing());
    if !tools.is_ready() {
        return Err(Failure::NoBackend);
    }
    output::in_form(json, &if json { tools.json() } else { tools.shown() })?;
    Ok(ExitCode::SUCCESS)
}

/// Returns headers with the key as bearer token.
fn credential(global: &Global) -> Result<http::HeaderMap, Failure> {
    let mut headers = http::HeaderMap::new();
    if let Some(key) = &global.key {
        let value = http::HeaderValue::try_from(format!("Bearer {key}"));
        let value = value.map_err(|_| Failure::Usage("--key has characters that no key has".to_owned()))?;
        headers.insert(http::header::AUTHORIZATION, value);
    }
    Ok(headers)
}

/// Returns the configuration, or with `--url` one whose only backend is that gateway.
fn configuration(global: &Global) -> Result<Config, Failure> {
    let loaded = super::load(global, Overrides::default())?;
    let mut config = loaded.config;
    let Some(url) = &global.url else {
        log_warnings(&loaded.warnings);
        return Ok(config);
    };
    let url = address(url)?;
    // The queried gateway applies its own rules, permissions and limits.
    config.rules = signalbox_config::Rules::default();
    config.permissions = signalbox_config::PermissionRules::default();
    config.rate_limits = signalbox_config::RateLimits::default();
    config.audit = None;
    config.backends = vec![BackendConfig {
        name: "gateway".to_owned(),
        target: BackendTarget::Url {
            url,
            headers: credential(global)?,
            transport: UrlTransport::Auto,
            tls: BackTlsSpec::default(),
            auth: None,
        },
        tape: None,
        tools: ToolFilter::default(),
        callers: Vec::new(),
        category: None,
        trust_level: TrustLevel::Untrusted,
        disabled: false,
        seal: false,
        timeout: config.gateway.call_timeout,
        start_timeout: config.gateway.first_list_wait,
        max_children: 1,
        addresses: signalbox_config::Addresses::default(),
        failing: signalbox_runtime::FailureRules::default(),
        lifetime: signalbox_runtime::Lifetime::default(),
        questions: signalbox_runtime::QuestionTime::default(),
        era: EraSetting::Auto,
    }];
    Ok(config)
}

fn show_result(result: &Value, json: bool) -> Result<ExitCode, Failure> {
    match json {
        true => output::json(result)?,
        false => output::exact(&content(result))?,
    }
    Ok(if result["isError"] == true { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Formats the result: text blocks unchanged, other blocks as JSON.
fn content(result: &Value) -> String {
    let blocks = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut text = String::new();
    for block in blocks {
        match block["text"].as_str() {
            Some(words) => text.push_str(words),
            None => text.push_str(&block.to_string()),
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    if blocks.is_empty() && !result["structuredContent"].is_null() {
        text = format!("{}\n", result["structuredContent"]);
    }
    text
}

fn show_progress(notification: &Value) {
    if notification["method"] == "notifications/progress" {
        let params = &notification["params"];
        let of = params["total"].as_f64().map(|total| format!(" of {total}")).unwrap_or_default();
        let message = params["message"].as_str().unwrap_or_default();
        output::say(table::harmless(&format!("{}{of} {message}", params["progress"])));
    }
}

fn warn_of_missing(missing: &[String]) {
    for backend in missing {
        output::complain(table::harmless(backend));
    }
}

/// Reports the backends that are late. Never returns, for use in `select!`.
async fn say_what_is_waited_for(app: &App) {
    tokio::time::sleep(PATIENCE).await;
    let status = app.gateway.status();
    let late = status.backends.iter().filter(|backend| !matches!(backend.state, "up" | "asleep" | "waiting"));
    let waiting: Vec<&str> = late.map(|backend| backend.name.as_str()).collect();
    if !waiting.is_empty() {
        output::say(format_args!("waiting for {}", waiting.join(", ")));
    }
    std::future::pending().await
}
