//! `signalbox seal verify`: verifies the signatures of messages and files.

use super::SealFailure;
use super::input::{FileSignature, domain_of, public_key, read, signature_path};
use crate::cli::{Global, SealVerifyArgs};
use crate::failure::Failure;
use crate::output;
use serde_json::json;
use signalbox_assembly::seal_folder::SealFolder;
use signalbox_control::table;
use signalbox_seal::keys::files::load_key_set;
use signalbox_seal::signed_json::{SignatureVerifier, VerifyError, signature_of};
use signalbox_seal::{
    Domain, KeyRole, KeySet, NonceBook, Profile, Signature, TimeWindow, TrustedKey, canonical, is_supported_algorithm,
    sha256,
};
use signalbox_wire::timestamp;
use std::io;
use std::process::ExitCode;
use std::time::SystemTime;

const UNKNOWN_SIGNER: u8 = 3;
const UNSIGNED: u8 = 5;

/// Facts that a valid signature proves.
struct Proof {
    principal: String,
    key_id: String,
    domain: Domain,
    signed_at: Option<u64>,
}

pub(super) fn run(global: &Global, folder: &SealFolder, args: &SealVerifyArgs) -> Result<ExitCode, Failure> {
    let content = read(&args.file)?;
    let domain = args.domain.unwrap_or_else(|| domain_of(&content));
    let seconds = args.at.unwrap_or_else(|| timestamp::seconds_of(SystemTime::now()));
    let checked = match domain {
        Domain::Request | Domain::Response => message(folder, args, domain, &content, seconds)?,
        Domain::Tape | Domain::Audit | Domain::Hop => file(folder, args, domain, &content, seconds)?,
    };
    let (text, code) = match &checked {
        Ok(proof) => (good(proof), 0),
        Err(why) => (format!("not valid: {why}\n"), exit_code(why)),
    };
    let text = if global.json { format!("{}\n", report(&checked)) } else { text };
    output::in_form(global.json, &text)?;
    Ok(ExitCode::from(code))
}

fn message(
    folder: &SealFolder,
    args: &SealVerifyArgs,
    domain: Domain,
    content: &[u8],
    seconds: i64,
) -> Result<Result<Proof, VerifyError>, Failure> {
    let signature = match signature_of(content) {
        Ok(Some(signature)) => signature,
        Ok(None) => return Ok(Err(VerifyError::Missing)),
        Err(error) => return Ok(Err(error)),
    };
    if let Some(profile) = args.profile.filter(|profile| profile.name() != signature.profile) {
        let why = format!("it is over {}, not over {profile}", table::harmless(&signature.profile));
        return Ok(Err(VerifyError::Malformed(why)));
    }
    let keys = trusted(folder, args, &signature.key_id)?;
    let nonces = NonceBook::new(1);
    // A file may be verified long after it was signed. The signature still expires at the time it names.
    let (window, profiles) = (TimeWindow::default(), &Profile::ALL);
    let verifier = SignatureVerifier { keys: &keys, window, nonces: &nonces, profiles };
    let now = u64::try_from(seconds).unwrap_or(0).saturating_mul(1_000);
    let hash = args.request.as_deref().map(read).transpose()?.map(|request| sha256(&request));
    let checked = match domain {
        Domain::Request => verifier.request(content, now),
        _ => verifier.response(content, hash.as_ref(), now),
    };
    Ok(checked.map(|verified| Proof {
        principal: verified.principal,
        key_id: verified.key_id,
        domain,
        signed_at: Some(verified.signed_at),
    }))
}

fn file(
    folder: &SealFolder,
    args: &SealVerifyArgs,
    domain: Domain,
    content: &[u8],
    seconds: i64,
) -> Result<Result<Proof, VerifyError>, Failure> {
    let path = signature_path(&args.file, args.signature.as_ref())?;
    let text = match read(&path) {
        Err(Failure::File { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Err(VerifyError::Missing));
        }
        other => other?,
    };
    let signature: FileSignature = match serde_json::from_slice(&text) {
        Ok(signature) => signature,
        Err(error) => return Ok(Err(VerifyError::Malformed(error.to_string()))),
    };
    let keys = trusted(folder, args, &signature.key_id)?;
    Ok(check_file(&signature, &keys, args.profile, domain, content, seconds))
}

fn check_file(
    signature: &FileSignature,
    keys: &KeySet,
    profile: Option<Profile>,
    domain: Domain,
    content: &[u8],
    seconds: i64,
) -> Result<Proof, VerifyError> {
    if !is_supported_algorithm(&signature.algorithm) {
        return Err(VerifyError::UnsupportedAlgorithm(signature.algorithm.chars().take(64).collect()));
    }
    if signature.domain != domain.name() {
        let found = signature.domain.chars().take(64).collect();
        return Err(VerifyError::WrongDomain { expected: domain.name(), found });
    }
    let unknown = || VerifyError::UnsupportedProfile(signature.profile.chars().take(64).collect());
    let found: Profile = signature.profile.parse().map_err(|_| unknown())?;
    if profile.is_some_and(|profile| profile != found) {
        return Err(unknown());
    }
    let key = keys.trusted(&signature.key_id, &KeyRole::ALL, seconds)?;
    let bytes = Signature::from_hex(&signature.signature)
        .ok_or_else(|| VerifyError::Malformed("`signature` is 128 hexadecimal digits".to_owned()))?;
    let canonical = canonical::json_as(found, content)?;
    key.key.verify(found, domain, &canonical, &bytes).map_err(|_| VerifyError::Tampered)?;
    Ok(Proof { principal: key.name.clone(), key_id: signature.key_id.clone(), domain, signed_at: None })
}

/// Returns the trusted keys: one key, those of a file, or those of the data folder.
fn trusted(folder: &SealFolder, args: &SealVerifyArgs, id: &str) -> Result<KeySet, Failure> {
    if let Some(given) = &args.public_key {
        let key = public_key(given)?.named(id).map_err(SealFailure::from)?;
        let mut keys = KeySet::new();
        keys.add(TrustedKey::new(key, given, &KeyRole::ALL)).map_err(SealFailure::from)?;
        return Ok(keys);
    }
    let keys = match &args.keys {
        Some(path) => load_key_set(path),
        None => folder.key_set(),
    };
    Ok(keys.map_err(SealFailure::from)?)
}

fn exit_code(why: &VerifyError) -> u8 {
    match why {
        VerifyError::Missing => UNSIGNED,
        VerifyError::UnknownKey(_) | VerifyError::Untrusted(_) => UNKNOWN_SIGNER,
        _ => 1,
    }
}

fn good(proof: &Proof) -> String {
    let at = proof.signed_at.map(|at| format!(" at {}", timestamp::rfc3339_millis(at))).unwrap_or_default();
    let (principal, key) = (table::harmless(&proof.principal), table::harmless(&proof.key_id));
    format!("valid: signed for `{}` by {principal} ({key}){at}\n", proof.domain)
}

fn report(checked: &Result<Proof, VerifyError>) -> serde_json::Value {
    match checked {
        Ok(proof) => json!({
            "valid": true,
            "principal": proof.principal,
            "key": proof.key_id,
            "domain": proof.domain.name(),
            "signed_at": proof.signed_at.map(timestamp::rfc3339_millis),
        }),
        Err(why) => json!({"valid": false, "reason": why.reason(), "message": why.to_string()}),
    }
}
