//! `signalbox seal keys`: creates, imports, trusts, rotates and revokes signing keys.

use super::SealFailure;
use super::input::{public_key, read};
use crate::cli::{ExportKeyArgs, Global, KeyArgs, KeyFormat, KeysCommand, NewKeyArgs};
use crate::commands::{administration, credentials, quietly};
use crate::failure::Failure;
use crate::output;
use serde_json::{Value, json};
use signalbox_assembly::seal_folder::SealFolder;
use signalbox_control::table;
use signalbox_seal::keys::files::{load_signing_key, save_private, save_signing_key};
use signalbox_seal::keys::{read_signing_key, write_pem, write_public_pem};
use signalbox_seal::{KeySet, SigningKey, TrustError, TrustedKey, VerifyingKey};
use signalbox_wire::timestamp;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

pub(super) fn run(global: &Global, folder: &SealFolder, command: KeysCommand) -> Result<ExitCode, Failure> {
    let of_new = |about: &KeyArgs| about.id.clone().unwrap_or_default();
    let (action, target) = match &command {
        KeysCommand::List | KeysCommand::Show { .. } => return carry_out(global, folder, command),
        KeysCommand::New(args) => ("seal_key.new", of_new(&args.about)),
        KeysCommand::Import { about, .. } => ("seal_key.import", of_new(&about.about)),
        KeysCommand::Export(args) => ("seal_key.export", args.id.clone()),
        KeysCommand::Revoke { id, .. } => ("seal_key.revoke", id.clone()),
        KeysCommand::Rotate { id, .. } => ("seal_key.rotate", id.clone()),
        KeysCommand::Trust { about, .. } => ("seal_key.trust", of_new(about)),
    };
    let done = carry_out(global, folder, command);
    if done.is_ok() && matches!(action, "seal_key.revoke" | "seal_key.rotate" | "seal_key.trust") {
        // Running gateways close the sessions that this key authenticated.
        quietly(global, async {
            credentials::announce(global).await;
            Ok(ExitCode::SUCCESS)
        })?;
    }
    administration::tried(global, (action, &target), done)
}

fn carry_out(global: &Global, folder: &SealFolder, command: KeysCommand) -> Result<ExitCode, Failure> {
    match command {
        KeysCommand::New(args) => {
            let key = SigningKey::generate().map_err(SealFailure::from)?;
            keep(global, folder, key, "seal_key.new", &args)
        }
        KeysCommand::Import { file, about } => {
            let key = read_signing_key(&read(&file)?).map_err(SealFailure::from)?;
            keep(global, folder, key, "seal_key.import", &about)
        }
        KeysCommand::List => list(global, folder),
        KeysCommand::Show { id } => tell(global, folder, &folder_keys(folder)?, &id),
        KeysCommand::Export(args) => export(global, folder, &args),
        KeysCommand::Revoke { id, at } => {
            let keys = folder.change_key_set(|keys| -> Result<KeySet, SealFailure> {
                keys.revoke(&id, at.unwrap_or_else(now))?;
                Ok(keys.clone())
            })?;
            note(global, folder, "seal_key.revoke", keys.get(&id));
            tell(global, folder, &keys, &id)
        }
        KeysCommand::Rotate { id, new_id, overlap } => rotate(global, folder, &id, new_id.as_deref(), overlap),
        KeysCommand::Trust { key, about } => {
            let key = named(public_key(&key)?, about.id.as_deref())?;
            let id = key.id().to_owned();
            let keys = folder.change_key_set(|keys| -> Result<KeySet, SealFailure> {
                keys.add(about_key(key, &about))?;
                Ok(keys.clone())
            })?;
            note(global, folder, "seal_key.trust", keys.get(&id));
            tell(global, folder, &keys, &id)
        }
    }
}

/// Records a change of a key in the audit log.
fn note(global: &Global, folder: &SealFolder, action: &str, key: Option<&TrustedKey>) {
    if let Some(key) = key {
        administration::note(global, (action, key.key.id()), None, Some(row(folder, key)));
    }
}

/// Loads the private key with this id or from this file, by default the gateway's own.
pub(super) fn signing_key(folder: &SealFolder, given: Option<&str>) -> Result<SigningKey, Failure> {
    let Some(given) = given else { return Ok(folder.signing_key().map_err(SealFailure::from)?) };
    if let Some(key) = private_half(folder, given)? {
        return Ok(key);
    }
    let path = Path::new(given);
    if !path.exists() {
        return Err(SealFailure::NoPrivate(given.to_owned()).into());
    }
    Ok(load_signing_key(path).map_err(SealFailure::from)?)
}

/// Loads the private half of a key of the data folder, if it is here.
fn private_half(folder: &SealFolder, id: &str) -> Result<Option<SigningKey>, Failure> {
    // An id has no slash, so it cannot name a file elsewhere.
    let known = folder_keys(folder)?.get(id).map(|known| known.key.clone());
    let Some(public) = known else { return Ok(None) };
    for path in [folder.private_key_file(id), folder.signing_key_file()] {
        if path.exists() {
            let key = load_signing_key(&path).map_err(SealFailure::from)?;
            if *key.verifying_key() == public {
                return Ok(Some(key.named(id).map_err(SealFailure::from)?));
            }
        }
    }
    Ok(None)
}

fn folder_keys(folder: &SealFolder) -> Result<KeySet, Failure> {
    Ok(folder.key_set().map_err(SealFailure::from)?)
}

/// Stores a private key, and trusts its public half.
fn keep(
    global: &Global,
    folder: &SealFolder,
    key: SigningKey,
    action: &str,
    args: &NewKeyArgs,
) -> Result<ExitCode, Failure> {
    let key = match &args.about.id {
        Some(id) => key.named(id).map_err(SealFailure::from)?,
        None => key,
    };
    let keys = folder.change_key_set(|keys| -> Result<KeySet, SealFailure> {
        keys.add(about_key(key.verifying_key().clone(), &args.about))?;
        save(folder, &key, args.signing)?;
        Ok(keys.clone())
    })?;
    note(global, folder, action, keys.get(key.id()));
    tell(global, folder, &keys, key.id())
}

fn save(folder: &SealFolder, key: &SigningKey, signing: bool) -> Result<(), SealFailure> {
    let path = if signing { folder.signing_key_file() } else { folder.private_key_file(key.id()) };
    folder.make_private()?;
    Ok(save_signing_key(&path, key)?)
}

fn rotate(
    global: &Global,
    folder: &SealFolder,
    id: &str,
    new_id: Option<&str>,
    overlap: Duration,
) -> Result<ExitCode, Failure> {
    private_half(folder, id)?.ok_or_else(|| SealFailure::NoPrivate(id.to_owned()))?;
    let fresh = SigningKey::generate().map_err(SealFailure::from)?;
    let fresh = match new_id {
        Some(new_id) => fresh.named(new_id).map_err(SealFailure::from)?,
        None => fresh,
    };
    let at = now();
    let until = at.saturating_add(i64::try_from(overlap.as_secs()).unwrap_or(i64::MAX));
    let keys = folder.change_key_set(|keys| -> Result<KeySet, SealFailure> {
        let own = is_own(folder, keys, id);
        keys.rotate(id, fresh.verifying_key().clone(), at, until)?;
        save(folder, &fresh, own)?;
        Ok(keys.clone())
    })?;
    note(global, folder, "seal_key.rotate", keys.get(fresh.id()));
    tell(global, folder, &keys, fresh.id())
}

/// Returns `true` if the gateway itself signs with the key of this id.
fn is_own(folder: &SealFolder, keys: &KeySet, id: &str) -> bool {
    let own = load_signing_key(&folder.signing_key_file()).ok();
    keys.get(id).zip(own).is_some_and(|(known, own)| known.key == *own.verifying_key())
}

fn export(global: &Global, folder: &SealFolder, args: &ExportKeyArgs) -> Result<ExitCode, Failure> {
    let is_private = !matches!(args.format, KeyFormat::Public | KeyFormat::PublicHex);
    let public = || -> Result<VerifyingKey, Failure> {
        let keys = folder_keys(folder)?;
        let known = keys.get(&args.id).ok_or_else(|| SealFailure::Unknown(TrustError::Unknown(args.id.clone())))?;
        Ok(known.key.clone())
    };
    let private = || -> Result<SigningKey, Failure> {
        Ok(private_half(folder, &args.id)?.ok_or_else(|| SealFailure::NoPrivate(args.id.clone()))?)
    };
    let content = match args.format {
        KeyFormat::Public => write_public_pem(&public()?).into_bytes(),
        KeyFormat::PublicHex => format!("{}\n", public()?.to_hex()).into_bytes(),
        KeyFormat::Pkcs8 => write_pem(&private()?).map_err(SealFailure::from)?.into_bytes(),
        KeyFormat::Pkcs8Der => private()?.to_pkcs8().map_err(SealFailure::from)?,
        KeyFormat::Seed => private()?.to_seed().map_err(SealFailure::from)?.to_vec(),
    };
    match output::file(args.output.as_ref()) {
        Some(path) => save_private(path, &content).map_err(SealFailure::from)?,
        None if !is_private => {
            output::result(&String::from_utf8_lossy(&content))?;
        }
        None => return Err(SealFailure::NotPrinted.into()),
    }
    if is_private {
        administration::note(global, ("seal_key.export", &args.id), None, Some(json!({"private": true})));
    }
    Ok(ExitCode::SUCCESS)
}

fn list(global: &Global, folder: &SealFolder) -> Result<ExitCode, Failure> {
    let keys = folder_keys(folder)?;
    if global.json {
        let rows: Vec<Value> = keys.iter().map(|key| row(folder, key)).collect();
        output::json(&Value::from(rows))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = Vec::new();
    for key in keys.iter() {
        let private = if has_private(folder, key) { "yes" } else { "" };
        let cells = [key.key.id(), &key.name, &roles(key), standing(key), private];
        rows.push(cells.map(ToOwned::to_owned).to_vec());
    }
    let text = match rows.is_empty() {
        true => "no key is trusted; `signalbox seal keys new` makes one\n".to_owned(),
        false => table::render(&["ID", "NAME", "ROLES", "STATE", "PRIVATE"], &rows),
    };
    output::result(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the properties of a key.
fn tell(global: &Global, folder: &SealFolder, keys: &KeySet, id: &str) -> Result<ExitCode, Failure> {
    let key = keys.get(id).ok_or_else(|| SealFailure::Unknown(TrustError::Unknown(id.to_owned())))?;
    let row = row(folder, key);
    if global.json {
        output::json(&row)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for (name, value) in row.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
        let value = value.as_str().map_or_else(|| value.to_string(), table::harmless);
        text.push_str(&format!("{name:<12}{value}\n"));
    }
    output::result(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn row(folder: &SealFolder, key: &TrustedKey) -> Value {
    let time = |seconds: Option<i64>| seconds.map(timestamp::rfc3339);
    json!({
        "id": key.key.id(),
        "name": key.name,
        "public_key": key.key.to_hex(),
        "roles": roles(key),
        "state": standing(key),
        "valid_from": time(key.valid_from),
        "valid_until": time(key.valid_until),
        "revoked_at": time(key.revoked_at),
        "replaces": key.replaces,
        "private": has_private(folder, key),
    })
}

fn roles(key: &TrustedKey) -> String {
    key.roles.iter().map(|role| role.name()).collect::<Vec<_>>().join(", ")
}

fn standing(key: &TrustedKey) -> &'static str {
    let now = now();
    if key.revoked_at.is_some_and(|at| now >= at) {
        "revoked"
    } else if key.valid_from.is_some_and(|from| now < from) {
        "not yet valid"
    } else if key.valid_until.is_some_and(|until| now >= until) {
        "expired"
    } else {
        "trusted"
    }
}

fn has_private(folder: &SealFolder, key: &TrustedKey) -> bool {
    matches!(private_half(folder, key.key.id()), Ok(Some(_)))
}

fn about_key(key: VerifyingKey, about: &KeyArgs) -> TrustedKey {
    let mut trusted = TrustedKey::new(key, &about.name, &about.roles);
    (trusted.valid_from, trusted.valid_until) = (about.valid_from, about.valid_until);
    trusted
}

fn named(key: VerifyingKey, id: Option<&str>) -> Result<VerifyingKey, SealFailure> {
    Ok(match id {
        Some(id) => key.named(id)?,
        None => key,
    })
}

fn now() -> i64 {
    timestamp::seconds_of(SystemTime::now())
}
