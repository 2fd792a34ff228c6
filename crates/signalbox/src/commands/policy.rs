//! `signalbox policy`: checks permissions, and explains what they decide.

use super::processes;
use super::tape::read_tape;
use crate::cli::{ExplainArgs, Global, PolicyCommand, Which, WhoArgs};
use crate::failure::Failure;
use crate::output;
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use signalbox_assembly::govern_parts::rates;
use signalbox_assembly::grants::GrantFile;
use signalbox_assembly::name_check;
use signalbox_assembly::permission_backtest::{BacktestDecision, Decisions, PermissionBacktest};
use signalbox_assembly::permission_trial::{PermissionTrial, TrialCaller, TrialDecision};
use signalbox_config::{Config, Overrides};
use signalbox_control::api::routes;
use signalbox_control::table;
use signalbox_engine::catalog::ListKind;
use signalbox_govern::CallLimits;
use signalbox_runtime::clock::unix_millis;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

pub(super) fn run(global: &Global, command: PolicyCommand) -> Result<ExitCode, Failure> {
    let config = super::load(global, Overrides::default())?.config;
    match command {
        PolicyCommand::Check => check(global, &config),
        PolicyCommand::Explain(args) => {
            warn_of_outdated_gateways(global);
            explain(global, &config, &args)
        }
        PolicyCommand::Who(args) => {
            warn_of_outdated_gateways(global);
            who(global, &config, &args)
        }
        PolicyCommand::Backtest { tapes, fail } => backtest(global, &config, &tapes, fail),
        PolicyCommand::Test { file } => test(global, &config, &file),
    }
}

/// Warns about running processes whose configuration differs from the file.
fn warn_of_outdated_gateways(global: &Global) {
    let asking = async {
        for process in processes::any(global, &Which::default())? {
            let Ok(status) = process.send(Method::GET, routes::STATUS, None).await else { continue };
            if let Some(why) = status["reload"]["last_error"].as_str() {
                let pid = &process.pid;
                output::say(format_args!(
                    "warning: the gateway (pid {pid}) runs an older configuration, because of {why}"
                ));
            }
        }
        Ok(ExitCode::SUCCESS)
    };
    // The answer comes from the file. A gateway that cannot be reached does not change it.
    let _ = super::quietly(global, asking);
}

fn check(global: &Global, config: &Config) -> Result<ExitCode, Failure> {
    let warnings = name_check::policy_doubts(config, &name_check::kept_catalog(config));
    let rules = &config.permissions;
    let policies = rules.policies.as_ref().map_or(0, |folder| folder.policies.rules().len());
    if global.json {
        let told = json!({"roles": rules.roles.len(), "policies": policies, "warnings": warnings});
        output::json(&told)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text: String = warnings.iter().map(|warning| format!("warning: {}\n", table::harmless(warning))).collect();
    text.push_str(&format!("{} and {} are fine\n", counted(rules.roles.len(), "role"), counted_policies(policies)));
    output::result(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn counted_policies(count: usize) -> String {
    if count == 1 { "1 policy".to_owned() } else { format!("{count} policies") }
}

fn explain(global: &Global, config: &Config, args: &ExplainArgs) -> Result<ExitCode, Failure> {
    let arguments = arguments(args.arguments.as_deref())?;
    let who = TrialCaller { principal: args.principal.clone(), roles: args.role.clone(), groups: args.group.clone() };
    let trial = with_grants(config)?;
    let tried = trial.decide(&who, args.kind.list(), &args.entry, arguments.as_deref(), unix_millis());
    if global.json {
        output::json(&shown(&tried))?;
        return Ok(ExitCode::SUCCESS);
    }
    let lines = [
        ("verdict", tried.verdict.to_owned()),
        ("listed", if tried.listed { "yes" } else { "no" }.to_owned()),
        ("decided by", tried.policy.clone().unwrap_or_else(|| "-".to_owned())),
        ("why", if tried.reason.is_empty() { "-".to_owned() } else { tried.reason.clone() }),
    ];
    let text: String = lines.iter().map(|(name, value)| format!("{name:<12}{}\n", table::harmless(value))).collect();
    output::result(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the permissions in force now: the configuration, switches, and grants that have not ended.
fn with_grants(config: &Config) -> Result<PermissionTrial, Failure> {
    let all = GrantFile::of(&config.data_dir).load()?;
    Ok(PermissionTrial::new(config)?.with_grants(&all, config, unix_millis()))
}

fn shown(tried: &TrialDecision) -> Value {
    let TrialDecision { verdict, listed, policy, reason, grant } = tried;
    json!({"verdict": verdict, "listed": listed, "policy": policy, "reason": reason, "grant": grant})
}

fn arguments(text: Option<&str>) -> Result<Option<Vec<u8>>, Failure> {
    let Some(text) = text else { return Ok(None) };
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(_)) => Ok(Some(text.as_bytes().to_vec())),
        Ok(_) => Err(Failure::Usage("--arguments must be a JSON object".to_owned())),
        Err(error) => Err(Failure::Usage(format!("--arguments is not JSON: {error}"))),
    }
}

fn who(global: &Global, config: &Config, args: &WhoArgs) -> Result<ExitCode, Failure> {
    let arguments = arguments(args.arguments.as_deref())?;
    let trial = with_grants(config)?;
    let user =
        |name: &str| (format!("user {name}"), TrialCaller { principal: name.to_owned(), ..TrialCaller::default() });
    let named = config.auth.users.iter().map(|(name, _)| name.as_str());
    // A principal with a grant need not be in the configuration.
    let mut known = BTreeSet::new();
    let names = named.chain(trial.granted()).filter(|name| known.insert(*name)).collect::<Vec<_>>();
    let role =
        |name: &String| (format!("role {name}"), TrialCaller { roles: vec![name.clone()], ..TrialCaller::default() });
    let users = config.auth.users.iter().chain(&config.auth.groups).flat_map(|(_, member)| &member.roles);
    let roles: BTreeSet<&String> = config.permissions.roles.iter().map(|(name, _)| name).chain(users).collect();
    let all = names.into_iter().map(user).chain(roles.into_iter().map(role));
    let all = all.chain([("anybody else".to_owned(), TrialCaller::default())]);
    let decided = |(label, who): (String, TrialCaller)| {
        let tried = trial.decide(&who, args.kind.list(), &args.entry, arguments.as_deref(), unix_millis());
        (label, tried)
    };
    let rows: Vec<(String, TrialDecision)> = all.map(decided).collect();
    if global.json {
        let row = |(label, tried): &(String, TrialDecision)| json!({"who": label, "decision": shown(tried)});
        output::json(&Value::from(rows.iter().map(row).collect::<Vec<_>>()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |(label, tried): &(String, TrialDecision)| {
        let policy = tried.policy.as_deref().unwrap_or("-");
        vec![table::harmless(label), tried.verdict.to_owned(), table::harmless(policy), table::harmless(&tried.reason)]
    };
    let rows: Vec<Vec<String>> = rows.iter().map(row).collect();
    output::result(&table::render(&["WHO", "VERDICT", "DECIDED BY", "WHY"], &rows))?;
    Ok(ExitCode::SUCCESS)
}

fn backtest(global: &Global, config: &Config, tapes: &[String], fail: bool) -> Result<ExitCode, Failure> {
    let mut backtest = PermissionBacktest::new(PermissionTrial::new(config)?, CallLimits::new(rates(config)));
    for name in tapes {
        let mut tape = read_tape(global, name, "policy backtest")?;
        let id = tape.info().id.clone();
        backtest.tape(&id, tape.entries(None))?;
    }
    let report = backtest.report();
    let rows = report.decisions.iter();
    if global.json {
        let row = |((then, now, policy), decisions): (&(BacktestDecision, BacktestDecision, String), &Decisions)| json!({"then": then.word(), "now": now.word(), "policy": policy, "calls": decisions.count, "examples": decisions.examples});
        let all: Vec<Value> = rows.map(row).collect();
        let told =
            json!({"calls": report.calls, "changed": report.changed(), "unknown": report.unknown, "decisions": all});
        output::json(&told)?;
    } else {
        let row = |((then, now, policy), decisions): (&(BacktestDecision, BacktestDecision, String), &Decisions)| {
            let example =
                decisions.examples.first().map_or_else(String::new, |(tape, exchange)| format!("{tape} {exchange}"));
            vec![
                then.word().to_owned(),
                now.word().to_owned(),
                decisions.count.to_string(),
                table::harmless(policy),
                example,
            ]
        };
        let rows: Vec<Vec<String>> = rows.map(row).collect();
        let mut text = table::render(&["THEN", "NOW", "CALLS", "DECIDED BY", "EXAMPLE"], &rows);
        text.push_str(&format!(
            "{} would be decided differently; {} cannot be judged\n",
            report.changed(),
            report.unknown
        ));
        output::result(&text)?;
    }
    Ok(if fail && report.changed() > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// File of expected decisions, for `policy test`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    case: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[serde(default)]
    name: String,
    #[serde(default)]
    principal: String,
    #[serde(default)]
    roles: Vec<String>,
    #[serde(default)]
    groups: Vec<String>,
    tool: String,
    #[serde(default)]
    arguments: Value,
    expect: String,
    policy: Option<String>,
}

fn test(global: &Global, config: &Config, file: &Path) -> Result<ExitCode, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| Failure::File { path: file.to_owned(), error })?;
    let cases: Cases =
        toml::from_str(&text).map_err(|error| Failure::Usage(format!("{}: {}", file.display(), error.message())))?;
    let trial = PermissionTrial::new(config)?;
    let mut failed = Vec::new();
    for case in &cases.case {
        let who =
            TrialCaller { principal: case.principal.clone(), roles: case.roles.clone(), groups: case.groups.clone() };
        let arguments = case.arguments.is_object().then(|| case.arguments.to_string().into_bytes());
        let tried = trial.decide(&who, ListKind::Tools, &case.tool, arguments.as_deref(), unix_millis());
        let other = case.policy.as_ref().is_some_and(|policy| tried.policy.as_ref() != Some(policy));
        if tried.verdict != case.expect || other {
            failed.push(
                json!({"case": title(case), "expected": case.expect, "policy": case.policy, "found": shown(&tried)}),
            );
        }
    }
    if global.json {
        output::json(&json!({"cases": cases.case.len(), "failed": failed}))?;
    } else {
        let line = |failure: &Value| {
            let found = &failure["found"];
            let word = |value: &Value| table::harmless(value.as_str().unwrap_or("-"));
            format!(
                "{}: expected {}, found {} by {} {}\n",
                word(&failure["case"]),
                word(&failure["expected"]),
                word(&found["verdict"]),
                word(&found["policy"]),
                word(&found["reason"])
            )
        };
        let mut text: String = failed.iter().map(line).collect();
        text.push_str(&format!(
            "{} of {} as expected\n",
            cases.case.len() - failed.len(),
            counted(cases.case.len(), "case")
        ));
        output::result(&text)?;
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn title(case: &Case) -> String {
    if case.name.is_empty() { format!("{} of {}", case.tool, case.principal) } else { case.name.clone() }
}
