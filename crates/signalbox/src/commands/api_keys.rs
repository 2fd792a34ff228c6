//! `signalbox keys`: API keys of callers.

use crate::cli::{ApiKeysCommand, Global, NewApiKeyArgs};
use crate::commands::{administration, credentials, data_dir, quietly};
use crate::failure::Failure;
use crate::output;
use serde_json::{Value, json};
use signalbox_assembly::key_file::KeyFile;
use signalbox_control::table;
use signalbox_govern::api_keys::{ApiKey, NewKey, RANDOM};
use signalbox_runtime::clock::unix_millis;
use signalbox_wire::timestamp;
use std::process::ExitCode;

pub(super) fn run(global: &Global, command: ApiKeysCommand) -> Result<ExitCode, Failure> {
    let file = KeyFile::of(&data_dir(global)?);
    match command {
        ApiKeysCommand::New(args) => {
            let name = args.name.clone();
            administration::tried(global, ("key.new", &name), new(global, &file, args))
        }
        ApiKeysCommand::List => list(global, &file),
        ApiKeysCommand::Revoke { key } => {
            administration::tried(global, ("key.revoke", &key), revoke(global, &file, &key))
        }
    }
}

fn new(global: &Global, file: &KeyFile, args: NewApiKeyArgs) -> Result<ExitCode, Failure> {
    if file.load()?.knows(&args.name) {
        return Err(Failure::Usage(format!("there is a key `{}` already; choose another name", args.name)));
    }
    let mut random = [0; RANDOM];
    getrandom::fill(&mut random).map_err(|error| Failure::Usage(format!("the system gives no randomness: {error}")))?;
    let now = unix_millis();
    let lifetime = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let new = NewKey {
        subject: args.subject.unwrap_or_else(|| format!("key:{}", args.name)),
        name: args.name,
        roles: args.roles,
        scopes: Some(args.scopes).filter(|scopes| !scopes.is_empty()),
        trust: args.trust.map(Into::into),
        expires: args.expires.map(|time| now.saturating_add(lifetime(time))),
    };
    let (id, secret) = file.change(|keys| keys.add(new, &random, now))?;
    let made = file.load()?.iter().find(|(other, _)| *other == id).map(|(id, key)| row(id, key, now));
    administration::note(global, ("key.new", &id), None, made);
    if global.json {
        output::json(&json!({ "id": id, "key": secret.reveal() }))?;
    } else {
        output::result(&format!("{}\n", secret.reveal()))?;
        output::say(format!("This is key {id}. It is not shown again."));
    }
    Ok(ExitCode::SUCCESS)
}

fn list(global: &Global, file: &KeyFile) -> Result<ExitCode, Failure> {
    let (keys, now) = (file.load()?, unix_millis());
    if global.json {
        let rows: Vec<Value> = keys.iter().map(|(id, key)| row(id, key, now)).collect();
        output::json(&Value::from(rows))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = Vec::new();
    for (id, key) in keys.iter() {
        let expires = key.expires.map_or_else(String::new, timestamp::rfc3339_millis);
        let cells = [id, &key.name, &key.subject, &key.roles.join(", "), key.fault(now).unwrap_or("good"), &expires];
        rows.push(cells.map(table::harmless).to_vec());
    }
    let text = match rows.is_empty() {
        true => "there is no key; `signalbox keys new NAME` makes one\n".to_owned(),
        false => table::render(&["ID", "NAME", "SUBJECT", "ROLES", "STATE", "EXPIRES"], &rows),
    };
    output::result(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn revoke(global: &Global, file: &KeyFile, key: &str) -> Result<ExitCode, Failure> {
    let (known, revoked) = file.change(|keys| (keys.knows(key), keys.revoke(key, unix_millis())))?;
    if !known {
        return Err(Failure::Usage(format!("there is no key `{key}`; `signalbox keys list` shows all")));
    }
    if revoked.is_empty() {
        return Err(Failure::Usage(format!("`{key}` was revoked before; nothing changed")));
    }
    quietly(global, async {
        credentials::announce(global).await;
        Ok(ExitCode::SUCCESS)
    })?;
    for id in &revoked {
        administration::note(global, ("key.revoke", id), None, Some(json!({"asked": key})));
    }
    if global.json {
        output::json(&json!({ "revoked": revoked }))?;
    } else {
        output::say(format!("revoked {}", revoked.join(", ")));
    }
    Ok(ExitCode::SUCCESS)
}

fn row(id: &str, key: &ApiKey, now: u64) -> Value {
    let time = |millis: Option<u64>| millis.map(timestamp::rfc3339_millis);
    json!({
        "id": id,
        "name": key.name,
        "subject": key.subject,
        "roles": key.roles,
        "scopes": key.scopes,
        "trust": key.trust,
        "state": key.fault(now).unwrap_or("good"),
        "created": time(Some(key.created)),
        "expires": time(key.expires),
        "revoked": time(key.revoked),
    })
}
