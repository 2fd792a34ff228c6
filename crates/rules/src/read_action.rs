//! Parses the `then` of a rule.

use crate::action::{
    Action, Cache, FAIL_KINDS, FailKind, InjectedFault, MessageTarget, RateLimit, SPREADS, Spread, Webhook,
};
use crate::error::{RuleError, RuleProblem};
use crate::facts::Root;
use crate::limits;
use crate::node::{RuleNode, RuleTable};
use crate::read_mock::mock;
use crate::template::{JsonTemplate, Template, rooted};
use signalbox_engine::log_level::LogLevel;
use signalbox_wire::closest::closest;
use std::time::Duration;

pub(crate) const KEYS: [&str; 17] = [
    "allow",
    "block",
    "set",
    "remove",
    "replace_params",
    "replace_result",
    "error",
    "delay",
    "fork",
    "log",
    "webhook",
    "hold",
    "mock",
    "fault",
    "rate_limit",
    "cache",
    "count",
];
const CODE: &str = "a whole number of 32 bits";

/// Parses one action: a table with one key, or the word `"allow"` or `"block"`.
pub(crate) fn action(node: &RuleNode<'_>) -> Result<Action, RuleError> {
    match node.as_str() {
        Some("allow") => return Ok(Action::Allow),
        Some("block") => return Ok(block_with(default_template(node, BLOCKED)?)),
        Some(_) => return Err(node.expected("\"allow\", \"block\", or a table such as { log = \"text\" }")),
        None => {}
    }
    let table = node.table("a table with one action, such as { block = \"not here\" }", &KEYS)?;
    let mut given = table.present(&KEYS);
    let (Some((key, value)), None) = (given.pop(), given.pop()) else {
        return Err(node.fail(RuleProblem::Beside(
            "expected exactly one action in a table; give every action a table of its own, in the order in which they are to run",
        )));
    };
    match key {
        "allow" => match value.flag()? {
            true => Ok(Action::Allow),
            false => Err(value.expected("true; to stop a message use `block`")),
        },
        "block" => block(&value),
        "set" => set(&value),
        "remove" => remove(&value),
        "replace_params" => Ok(Action::Replace(Root::Params, object(&value)?)),
        "replace_result" => Ok(Action::Replace(Root::Result, object(&value)?)),
        "error" => error(&value),
        "delay" => delay(&value),
        "fork" => fork(&value),
        "log" => log(&value),
        "webhook" => webhook(&value),
        "hold" => hold(&value),
        "mock" => mock(&value),
        "fault" => fault(&value),
        "rate_limit" => rate_limit(&value),
        "cache" => cache(&value),
        _ => Ok(Action::Count { name: metric(&value)? }),
    }
}

const BLOCKED: &str = "rule `${rule}` does not let this pass";

fn block_with(message: Template) -> Action {
    Action::Block { message, code: None }
}

fn block(node: &RuleNode<'_>) -> Result<Action, RuleError> {
    if node.flag().is_ok_and(|yes| yes) {
        return Ok(block_with(default_template(node, BLOCKED)?));
    }
    if !node.is_table() {
        return Ok(block_with(template(node, "true, a message, or a table such as { message = \"not here\" }")?));
    }
    let table = node.table("a message, or a table", &["message", "code"])?;
    let message = match table.get("message") {
        Some(message) => template(&message, "a message")?,
        None => default_template(node, BLOCKED)?,
    };
    Ok(Action::Block { message, code: table.get("code").map(|code| code_of(&code)).transpose()? })
}

fn code_of(node: &RuleNode<'_>) -> Result<i64, RuleError> {
    node.integer(CODE, i64::from(i32::MIN)..=i64::from(i32::MAX))
}

fn set(node: &RuleNode<'_>) -> Result<Action, RuleError> {
    let expected = "a table such as { \"/params/arguments/limit\" = 10 }";
    let entries = node.open_table(expected)?;
    if entries.is_empty() {
        return Err(node.expected(expected));
    }
    let one = |(name, entry): &(&str, RuleNode<'_>)| Ok((target(entry, name)?, JsonTemplate::of(entry)?));
    Ok(Action::Set(entries.iter().map(one).collect::<Result<_, RuleError>>()?))
}

fn remove(node: &RuleNode<'_>) -> Result<Action, RuleError> {
    let pointers = node.texts("a pointer such as \"/params/arguments/limit\", or a list of them", limits::POINTER)?;
    Ok(Action::Remove(pointers.into_iter().map(|pointer| target(node, pointer)).collect::<Result<_, _>>()?))
}

fn target(node: &RuleNode<'_>, pointer: &str) -> Result<MessageTarget, RuleError> {
    let read = rooted(pointer).filter(|(root, pointer)| *root != Root::Error && !pointer.segments().is_empty());
    let (root, pointer) = read.ok_or_else(|| {
        let expected = "a pointer that starts with /params/ or /result/, such as \"/params/arguments/limit\"; \
                        to replace all of it use `replace_params` or `replace_result`"
            .to_owned();
        node.fail(RuleProblem::Expected { expected, found: crate::error::shown(pointer) })
    })?;
    Ok(MessageTarget { root, pointer })
}

pub(crate) fn object(node: &RuleNode<'_>) -> Result<JsonTemplate, RuleError> {
    if node.is_table() { JsonTemplate::of(node) } else { Err(node.expected("a table")) }
}

fn error(node: &RuleNode<'_>) -> Result<Action, RuleError> {
    let table = node.table("a table such as { code = -32000, message = \"down\" }", &["code", "message", "data"])?;
    Ok(Action::Error {
        code: code_of(&table.need("code")?)?,
        message: template(&table.need("message")?, "a message")?,
        data: table.get("data").map(|data| JsonTemplate::of(&data)).transpose()?,
    })
}

fn delay(node: &RuleNode<'_>) -> Result<Action, RuleError> {
    if !node.is_table() {
        let time = node.duration(limits::WAIT)?;
        return Ok(Action::Delay { least: time, most: time });
    }
    let between = node.table("a time, or { between = [\"100ms\", \"300ms\"] }", &["between"])?.need("between")?;
    let times = between.list("two times")?;
    let [least, most] = times.as_slice() else { return Err(between.expected("two times")) };
    let (least, most) = (least.duration(limits::WAIT)?, most.duration(limits::WAIT)?);
    if least > most {
        return Err(between.expected("the shorter time first"));
    }
    Ok(Action::Delay { least, most })
}

fn fork(node: &RuleNode<'_>) -> Result<Action, RuleError> {
    let backend = match node.is_table() {
        true => node.table("a backend", &["backend"])?.need("backend")?,
        false => node.clone(),
    };
    Ok(Action::Fork { backend: backend.text("the name of a backend", limits::NAME)?.into() })
}

fn log(node: &RuleNode<'_>) -> Result<Action, RuleError> {
    if !node.is_table() {
        return Ok(Action::Log { level: LogLevel::Info, text: template(node, "a text, or a table with `text`")? });
    }
    let table = node.table("a text, or a table", &["level", "text"])?;
    let level = table.get("level").map(|level| {
        let levels = "debug, info, notice, warning, error, critical, alert or emergency";
        level.as_str().and_then(LogLevel::parse).ok_or_else(|| level.expected(levels))
    });
    let text = template(&table.need("text")?, "a text")?;
    Ok(Action::Log { level: level.transpose()?.unwrap_or(LogLevel::Info), text })
}

fn webhook(node: &RuleNode<'_>) -> Result<Action, RuleError> {
    let keys = ["url", "timeout", "wait", "on_failure"];
    let expected = "a URL, or a table such as { url = \"https://…\", wait = true }";
    let table = if node.is_table() { Some(node.table(expected, &keys)?) } else { None };
    let get = |key: &str| table.as_ref().and_then(|table| table.get(key));
    let url = match &table {
        Some(table) => table.need("url")?,
        None => node.clone(),
    };
    let text = url.text(expected, limits::TEXT)?;
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    if host.is_none_or(|host| host.is_empty() || host.starts_with('/') || text.bytes().any(|byte| byte <= b' ')) {
        return Err(url.expected("a URL that starts with http:// or https://"));
    }
    let wait = get("wait").map(|wait| wait.flag()).transpose()?.unwrap_or(false);
    let block_on_failure = match get("on_failure") {
        Some(failure) if !wait => return Err(failure.fail(RuleProblem::Beside("has no effect without `wait = true`"))),
        Some(failure) => word(&failure, &[("block", true), ("allow", false)])?,
        None => true,
    };
    let timeout =
        get("timeout").map(|time| time.duration(limits::WAIT)).transpose()?.unwrap_or(limits::WEBHOOK_DEFAULT);
    Ok(Action::Webhook(Webhook {
        url: text.into(),
        shown: without_secrets(text).into(),
        timeout,
        wait,
        block_on_failure,
    }))
}

fn without_secrets(url: &str) -> String {
    let plain = url.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = plain.split_once("://").unwrap_or(("", plain));
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

fn hold(node: &RuleNode<'_>) -> Result<Action, RuleError> {
    let default = "rule `${rule}` holds ${method} ${tool}";
    if node.flag().is_ok_and(|yes| yes) {
        let reason = default_template(node, default)?;
        return Ok(Action::Hold { reason, within: limits::HOLD_DEFAULT, release: false });
    }
    if !node.is_table() {
        let reason =
            template(node, "true, a reason, or a table such as { reason = \"look at it\", within = \"30s\" }")?;
        return Ok(Action::Hold { reason, within: limits::HOLD_DEFAULT, release: false });
    }
    let table = node.table("a reason, or a table", &["reason", "within", "on_expiry"])?;
    let reason = match table.get("reason") {
        Some(reason) => template(&reason, "a reason")?,
        None => default_template(node, default)?,
    };
    let within = table.get("within").map(|time| time.duration(limits::WAIT)).transpose()?;
    let release = table.get("on_expiry").map(|expiry| word(&expiry, &[("refuse", false), ("release", true)]));
    Ok(Action::Hold {
        reason,
        within: within.unwrap_or(limits::HOLD_DEFAULT),
        release: release.transpose()?.unwrap_or(false),
    })
}

pub(crate) fn seed(table: &RuleTable<'_>) -> Result<Option<u64>, RuleError> {
    let read = |node: RuleNode<'_>| node.integer("a whole number that is not negative", 0..=i64::MAX);
    Ok(table.get("seed").map(read).transpose()?.and_then(|seed| u64::try_from(seed).ok()))
}

fn fault(node: &RuleNode<'_>) -> Result<Action, RuleError> {
    let keys = ["kind", "probability", "seed", "after", "spread"];
    let table = node.table("a table such as { kind = \"timeout\", probability = 0.1 }", &keys)?;
    let kind_node = table.need("kind")?;
    let kind = word(&kind_node, &FAIL_KINDS)?;
    let probability = match table.get("probability") {
        None => 1.0,
        Some(node) => {
            let number = node.number("a number from 0 to 1")?;
            Some(number)
                .filter(|number| (0.0..=1.0).contains(number))
                .ok_or_else(|| node.expected("a number from 0 to 1"))?
        }
    };
    let after = match (table.get("after"), kind) {
        (Some(node), FailKind::Timeout | FailKind::Slow) => node.duration(limits::WAIT)?,
        (Some(node), _) => {
            return Err(node.fail(RuleProblem::Beside("`after` applies only to the kinds `timeout` and `slow`")));
        }
        (None, FailKind::Timeout) => Duration::from_secs(30),
        (None, _) => Duration::from_secs(2),
    };
    let spread = match (table.get("spread"), kind) {
        (Some(node), FailKind::Slow) => word(&node, &SPREADS)?,
        (Some(node), _) => return Err(node.fail(RuleProblem::Beside("`spread` applies only to the kind `slow`"))),
        (None, _) => Spread::Fixed,
    };
    Ok(Action::Fault(InjectedFault { kind, probability, seed: seed(&table)?, after, spread }))
}

fn rate_limit(node: &RuleNode<'_>) -> Result<Action, RuleError> {
    let table = node.table("a table such as { limit = 10, per = \"1m\" }", &["key", "limit", "per"])?;
    let most = i64::try_from(limits::USES).unwrap_or(i64::MAX);
    let limit = table.need("limit")?.integer(&format!("a whole number from 1 to {most}"), 1..=most)?;
    let key = match table.get("key") {
        Some(key) => template(&key, "a text such as \"${session}:${tool}\"")?,
        None => default_template(node, "${principal}")?,
    };
    let per = table.need("per")?.duration(limits::SPAN)?;
    Ok(Action::RateLimit(RateLimit { key, limit: limit.unsigned_abs(), per }))
}

fn cache(node: &RuleNode<'_>) -> Result<Action, RuleError> {
    let table = node.table("a table such as { ttl = \"5m\" }", &["key", "ttl", "max_entries", "shared"])?;
    let key = match table.get("key") {
        Some(key) => template(&key, "a text such as \"${tool}:{{/params/arguments}}\"")?,
        None => default_template(node, "${method}:${tool}:{{/params/arguments}}")?,
    };
    let most = i64::try_from(limits::CACHED).unwrap_or(i64::MAX);
    let entries = table
        .get("max_entries")
        .map(|entries| entries.integer(&format!("a whole number from 1 to {most}"), 1..=most).map(i64::unsigned_abs));
    let max_entries = usize::try_from(entries.transpose()?.unwrap_or(limits::CACHED_DEFAULT)).unwrap_or(usize::MAX);
    let shared = table.get("shared").map(|shared| shared.flag()).transpose()?.unwrap_or(false);
    Ok(Action::Cache(Cache { key, ttl: table.need("ttl")?.duration(limits::SPAN)?, max_entries, shared }))
}

fn metric(node: &RuleNode<'_>) -> Result<std::sync::Arc<str>, RuleError> {
    let expected = "a name of letters, digits, `_`, `.` and `-`";
    let name = match node.is_table() {
        true => node.table(expected, &["name"])?.need("name")?,
        false => node.clone(),
    };
    let text = name.text(expected, limits::NAME)?;
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
    if plain { Ok(text.into()) } else { Err(name.expected(expected)) }
}

fn template(node: &RuleNode<'_>, expected: &str) -> Result<Template, RuleError> {
    Template::parse(node, node.text(expected, limits::TEXT)?)
}

fn default_template(node: &RuleNode<'_>, text: &str) -> Result<Template, RuleError> {
    Template::parse(node, text)
}

/// Parses one of several keywords.
fn word<T: Copy>(node: &RuleNode<'_>, known: &[(&'static str, T)]) -> Result<T, RuleError> {
    let found = node.as_str().and_then(|text| known.iter().find(|(word, _)| *word == text));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<_> = known.iter().map(|(word, _)| *word).collect();
        let hint = node.as_str().and_then(|text| closest(text, &words));
        let hint = hint.map_or_else(String::new, |word| format!(" (did you mean `{word}`?)"));
        node.expected(format!("one of {}{hint}", words.join(", ")))
    })
}
