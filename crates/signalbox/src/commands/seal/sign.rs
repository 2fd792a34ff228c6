//! `signalbox seal sign`: signs messages in place, and other JSON with a detached signature.

use super::SealFailure;
use super::input::{FileSignature, domain_of, read, signature_path};
use super::keys::signing_key;
use crate::cli::{Global, SignArgs};
use crate::failure::Failure;
use crate::output;
use serde_json::json;
use signalbox_assembly::seal_folder::SealFolder;
use signalbox_seal::signed_json::{SignatureTerms, sign_request, sign_response};
use signalbox_seal::{ALGORITHM, Domain, SigningKey, canonical, hex, sha256};
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

const NONCE_BYTES: usize = 16;

pub(super) fn run(global: &Global, folder: &SealFolder, args: &SignArgs) -> Result<ExitCode, Failure> {
    let content = read(&args.file)?;
    let key = signing_key(folder, args.key.as_deref())?;
    match args.domain.unwrap_or_else(|| domain_of(&content)) {
        Domain::Hop => Err(SealFailure::Domain(Domain::Hop.name()).into()),
        domain @ (Domain::Request | Domain::Response) => message(args, domain, &key, &content),
        domain @ (Domain::Tape | Domain::Audit) => file(global, args, domain, &key, &content),
    }
}

/// Signs a message. The signature goes into its `_meta`.
fn message(args: &SignArgs, domain: Domain, key: &SigningKey, content: &[u8]) -> Result<ExitCode, Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut nonce).map_err(SealFailure::Random)?;
    let mut terms = SignatureTerms::new(&hex(&nonce), millis(now), millis(now.saturating_add(args.expires)));
    terms.profile = args.profile;
    if let Some(request) = &args.request {
        terms.request_hash = Some(sha256(&read(request)?));
    }
    let sign = if domain == Domain::Request { sign_request } else { sign_response };
    let mut signed = sign(content, key, &terms).map_err(SealFailure::from)?.to_vec();
    match output::file(args.output.as_ref()) {
        Some(path) => write(path, &signed)?,
        None => {
            if signed.last() != Some(&b'\n') {
                signed.push(b'\n');
            }
            output::exact(&String::from_utf8_lossy(&signed))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Signs any other JSON, with a detached signature.
fn file(
    global: &Global,
    args: &SignArgs,
    domain: Domain,
    key: &SigningKey,
    content: &[u8],
) -> Result<ExitCode, Failure> {
    let path = signature_path(&args.file, args.output.as_ref())?;
    let canonical = canonical::json_as(args.profile, content).map_err(SealFailure::from)?;
    let signature = key.sign(args.profile, domain, &canonical).map_err(SealFailure::from)?;
    let signature = FileSignature {
        key_id: key.id().to_owned(),
        algorithm: ALGORITHM.to_owned(),
        profile: args.profile.name().to_owned(),
        domain: domain.name().to_owned(),
        signature: signature.to_hex(),
    };
    write(&path, format!("{:#}\n", json!(signature)).as_bytes())?;
    let said = match global.json {
        true => format!("{}\n", json!({"signature": path, "key": key.id(), "domain": domain.name()})),
        false => format!("{}: signed for `{domain}` by {}\n", path.display(), key.id()),
    };
    output::in_form(global.json, &said)?;
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, content: &[u8]) -> Result<(), Failure> {
    fs::write(path, content).map_err(|error| Failure::File { path: path.to_owned(), error })
}
