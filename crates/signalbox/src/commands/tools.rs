//! `signalbox tools`: list and call what the backends offer, without any client.

use crate::assemble::{App, assemble};
use crate::cli::{From, Global, ToolsCommand};
use crate::config::{BackendConfig, Config, Era, Overrides, Target, ToolFilter, TrustLevel, UrlTransport};
use crate::failure::{Failure, log_warnings};
use crate::output;
use crate::pipe::Pipe;
use crate::signals::Signals;
use crate::table;
use serde_json::{Map, Value, json};
use signalbox_engine::{Caller, Principal, Proof};
use signalbox_transport::tls::BackTlsSpec;
use std::process::ExitCode;
use std::time::Duration;

/// How long nothing may come before it is said what is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// Most characters shown of a description.
const DESCRIPTION: usize = 100;

/// Starts the backends, asks, and ends them again.
pub(super) async fn run(global: &Global, command: ToolsCommand) -> Result<ExitCode, Failure> {
    let (ToolsCommand::List { from } | ToolsCommand::Call { from, .. }) = &command;
    let config = configuration(global, from)?;
    // Live lists only: what another process knew at its end says nothing about now.
    let principal = Principal::local("tools");
    let app = assemble(&config, principal.clone(), None, None)?;
    let mut signals = Signals::listen().map_err(Failure::Start)?;
    app.gateway.start();
    let done = tokio::select! {
        done = ask(&app, principal, global, &command) => done,
        () = say_what_is_waited_for(&app) => Ok(ExitCode::SUCCESS),
        _ = signals.next() => Ok(ExitCode::from(super::serve::FORCED)),
    };
    app.shut_down(Duration::ZERO).await;
    done
}

async fn ask(app: &App, principal: Principal, global: &Global, command: &ToolsCommand) -> Result<ExitCode, Failure> {
    let arguments = match command {
        ToolsCommand::List { .. } => Map::new(),
        ToolsCommand::Call { args, .. } => serde_json::from_str(args)
            .map_err(|error| Failure::Usage(format!("--args must be a JSON object: {error}")))?,
    };
    let mut pipe = Pipe::open(&app.gateway, Caller::of(principal, Proof::LocalUser, "stdio")).await?;
    let done = match command {
        ToolsCommand::List { .. } => show_list(&mut pipe, app, global.json).await,
        ToolsCommand::Call { name, .. } => call(&mut pipe, name, arguments, global.json).await,
    };
    if done.is_err() || matches!(command, ToolsCommand::List { .. }) {
        warn_of_missing(app);
    }
    done
}

async fn show_list(pipe: &mut Pipe, app: &App, json: bool) -> Result<ExitCode, Failure> {
    let tools = list(pipe).await?;
    if !app.gateway.backends().is_empty() && !app.gateway.is_ready() {
        return Err(Failure::NoBackend);
    }
    output::result(&if json { format!("{}\n", Value::from(tools)) } else { show(&tools) })?;
    Ok(ExitCode::SUCCESS)
}

/// The configuration, or one whose only backend is the gateway to ask.
fn configuration(global: &Global, from: &From) -> Result<Config, Failure> {
    let loaded = super::load(global, Overrides::default())?;
    let mut config = loaded.config;
    let Some(url) = &from.url else {
        log_warnings(&loaded.warnings);
        return Ok(config);
    };
    let bad = |why: &str| Failure::Usage(format!("--url must be like http://127.0.0.1:8080/mcp: {why}"));
    let url: http::Uri = url.parse().map_err(|error: http::uri::InvalidUri| bad(&error.to_string()))?;
    // The gateway that is asked has rules of its own.
    config.rules = crate::config::Rules::default();
    config.backends = vec![BackendConfig {
        name: "gateway".to_owned(),
        target: Target::Url {
            url,
            headers: http::HeaderMap::new(),
            transport: UrlTransport::Auto,
            tls: BackTlsSpec::default(),
        },
        tools: ToolFilter::default(),
        callers: Vec::new(),
        category: None,
        trust_level: TrustLevel::Untrusted,
        disabled: false,
        timeout: config.gateway.call_timeout,
        start_timeout: config.gateway.first_list_wait,
        max_children: 1,
        addresses: crate::config::Addresses::default(),
        failing: signalbox_runtime::FailureRules::default(),
        era: Era::Auto,
    }];
    Ok(config)
}

/// Every page of the list.
async fn list(pipe: &mut Pipe) -> Result<Vec<Value>, Failure> {
    let mut tools = Vec::new();
    let mut params = json!({});
    loop {
        let mut page = pipe.request("tools/list", params, |_| ()).await?;
        if let Some(more) = page["tools"].as_array_mut() {
            tools.append(more);
        }
        match page["nextCursor"].take() {
            Value::Null => return Ok(tools),
            cursor => params = json!({"cursor": cursor}),
        }
    }
}

fn show(tools: &[Value]) -> String {
    let row = |tool: &Value| {
        let text = tool["description"].as_str().or(tool["title"].as_str()).unwrap_or_default();
        let first = text.trim().lines().next().unwrap_or_default();
        let mut short: String = first.chars().take(DESCRIPTION).collect();
        if short.len() < first.len() {
            short.push('…');
        }
        vec![tool["name"].as_str().unwrap_or_default().to_owned(), short]
    };
    table::render(&["TOOL", "DESCRIPTION"], &tools.iter().map(row).collect::<Vec<_>>())
}

async fn call(pipe: &mut Pipe, name: &str, arguments: Map<String, Value>, json: bool) -> Result<ExitCode, Failure> {
    let params = json!({"name": name, "arguments": arguments, "_meta": {"progressToken": 1}});
    let result = pipe.request("tools/call", params, show_progress).await?;
    let failed = result["isError"] == true;
    output::result(&if json { format!("{result}\n") } else { content(&result) })?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Text as it is; of anything else, what it is.
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

fn warn_of_missing(app: &App) {
    for backend in app.gateway.status().backends.iter().filter(|backend| backend.state != "up") {
        let why = backend.last_error.as_deref().unwrap_or("it did not answer in time");
        output::complain(table::harmless(&format!("backend `{}` is {}: {why}", backend.name, backend.state)));
    }
}

/// Never ends.
async fn say_what_is_waited_for(app: &App) {
    tokio::time::sleep(PATIENCE).await;
    let status = app.gateway.status();
    let waiting: Vec<&str> =
        status.backends.iter().filter(|backend| backend.state != "up").map(|backend| backend.name.as_str()).collect();
    if !waiting.is_empty() {
        output::say(format_args!("waiting for {}", waiting.join(", ")));
    }
    std::future::pending().await
}
