//! Command line of `signalbox seal`.

use clap::{Args, Subcommand, ValueEnum};
use signalbox_config::duration;
use signalbox_seal::{Domain, KeyRole, Profile};
use signalbox_wire::timestamp;
use std::path::PathBuf;
use std::time::Duration;

/// Text below the help of `signalbox seal`.
pub const SEAL_HELP: &str = "\
Keys are Ed25519. The data folder keeps them in `seal`: `signing.key` signs for this gateway, `private` has other private \
keys, `keys.toml` lists whom it trusts. Running gateways notice changes within a second.

Exit codes of verify: 0 valid, 1 not valid, 3 the signer is not known or not trusted, 5 not signed.

Examples:
  signalbox seal keys new --id ada --name ada --role client
  signalbox seal keys trust west.pub --name west --role gateway
  signalbox seal sign call.json --key ada -o signed.json
  signalbox seal verify signed.json
  signalbox seal sign report.json && signalbox seal verify report.json";

/// Commands about keys and signatures.
#[derive(Debug, Subcommand)]
pub enum SealCommand {
    /// Make, show, trust and revoke keys
    #[command(after_help = KEYS_HELP)]
    Keys {
        #[command(subcommand)]
        command: KeysCommand,
    },
    /// Sign a JSON-RPC message or any other JSON file
    ///
    /// A message gets the signature into its `_meta` and is printed. Any other JSON is left as it is; its signature is
    /// written beside it, as FILE.sig.
    Sign(SignArgs),
    /// Check the signature of a JSON-RPC message or any other JSON file
    Verify(SealVerifyArgs),
}

const KEYS_HELP: &str = "\
Examples:
  signalbox seal keys new --id ada --name ada --role client
  signalbox seal keys list
  signalbox seal keys export ada -o ada.pub
  signalbox seal keys import old.pem --id ada-laptop --name ada
  signalbox seal keys rotate ada --overlap 7d
  signalbox seal keys revoke ada";

/// Commands about signing keys.
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Make a key pair, keep it in the data folder and trust it there
    New(NewKeyArgs),
    /// List the trusted keys
    List,
    /// Show one trusted key
    Show {
        /// Id of the key
        id: String,
    },
    /// Take a private key from a file (PKCS#8 as PEM or DER, or a seed), keep it and trust it
    Import {
        /// File, or `-` for standard input
        file: PathBuf,
        #[command(flatten)]
        about: NewKeyArgs,
    },
    /// Write the public or the private half of a key to a file
    Export(ExportKeyArgs),
    /// Stop trusting a key
    Revoke {
        /// Id of the key
        id: String,
        /// Moment from which it is not trusted, such as 2026-01-01T00:00:00Z [default: now]
        #[arg(long, value_name = "TIME", value_parser = moment)]
        at: Option<i64>,
    },
    /// Replace a key that is kept here by a new key pair
    Rotate {
        /// Id of the key
        id: String,
        /// Id of the new key [default: made of its public half]
        #[arg(long, value_name = "ID")]
        new_id: Option<String>,
        /// Time for which the old key is trusted beside the new one
        #[arg(long, value_name = "TIME", default_value = "1d", value_parser = duration::of_seconds)]
        overlap: Duration,
    },
    /// Trust the public key of another party
    Trust {
        /// Public key: a file, or 64 hexadecimal digits
        key: String,
        #[command(flatten)]
        about: KeyArgs,
    },
}

/// Properties of a key that is made here.
#[derive(Debug, Clone, Args)]
pub struct NewKeyArgs {
    #[command(flatten)]
    pub about: KeyArgs,
    /// Make it the key with which this gateway signs
    #[arg(long)]
    pub signing: bool,
}

/// Properties of a key.
#[derive(Debug, Clone, Args)]
pub struct KeyArgs {
    /// Principal that its signatures prove
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// Id that signatures name [default: made of the public half]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Role in which it may sign: client, server, gateway or recorder; several are allowed
    #[arg(long = "role", value_name = "ROLE", default_value = "client")]
    pub roles: Vec<KeyRole>,
    /// Algorithm of the key; Ed25519 is the only one
    #[arg(long, value_name = "NAME", default_value = "Ed25519", value_parser = algorithm)]
    pub algorithm: String,
    /// Trust it from this moment on, such as 2026-01-01T00:00:00Z
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub valid_from: Option<i64>,
    /// Trust it until this moment
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub valid_until: Option<i64>,
}

/// Arguments of `seal keys export`.
#[derive(Debug, Clone, Args)]
pub struct ExportKeyArgs {
    /// Id of the key
    pub id: String,
    /// Format of the exported key
    #[arg(long, value_enum, default_value = "public")]
    pub format: KeyFormat,
    /// Write to this file, readable by its owner only; a private key is written nowhere else
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Formats in which a key is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KeyFormat {
    /// The public half as PEM
    Public,
    /// The public half as 64 hexadecimal digits
    PublicHex,
    /// The private key as PKCS#8 in PEM
    Pkcs8,
    /// The private key as PKCS#8 in DER
    Pkcs8Der,
    /// The seed of the private key, 32 bytes
    Seed,
}

/// Arguments of `seal sign`.
#[derive(Debug, Clone, Args)]
pub struct SignArgs {
    /// File to sign, or `-` for standard input
    pub file: PathBuf,
    /// Id of a key in the data folder, or a private key file [default: the gateway's own]
    #[arg(short, long, value_name = "KEY")]
    pub key: Option<String>,
    /// Purpose of the signature: request, response, tape or audit [default: by what the file is]
    #[arg(long, value_name = "DOMAIN")]
    pub domain: Option<Domain>,
    /// Canonical form that is signed: mcp-cbor/1 or mcp-cbor/2
    #[arg(long, value_name = "PROFILE", default_value = "mcp-cbor/2")]
    pub profile: Profile,
    /// Time for which a signed message is valid
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration::of_seconds)]
    pub expires: Duration,
    /// For a response: the file with the request that it answers
    #[arg(long, value_name = "FILE")]
    pub request: Option<PathBuf>,
    /// Write to this file instead
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Arguments of `seal verify`.
#[derive(Debug, Clone, Args)]
pub struct SealVerifyArgs {
    /// File to check, or `-` for standard input
    pub file: PathBuf,
    /// For a file that is no message: its signature [default: FILE.sig]
    #[arg(long, value_name = "FILE")]
    pub signature: Option<PathBuf>,
    /// Purpose that the signature must have: request, response, tape or audit [default: by what the file is]
    #[arg(long, value_name = "DOMAIN")]
    pub domain: Option<Domain>,
    /// Canonical form that must be signed [default: the one that the signature names]
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<Profile>,
    /// Trust the keys in this file instead of those of the data folder
    #[arg(long, value_name = "FILE", conflicts_with = "public_key")]
    pub keys: Option<PathBuf>,
    /// Trust only this public key, a file or 64 hexadecimal digits, under whatever id the signature names
    #[arg(long, value_name = "KEY")]
    pub public_key: Option<String>,
    /// For a response: the file with the request that it answers
    #[arg(long, value_name = "FILE")]
    pub request: Option<PathBuf>,
    /// Check as if it were this moment, such as 2026-01-01T00:00:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub at: Option<i64>,
}

/// Error for a text that is not an RFC 3339 timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a moment such as 2026-01-01T00:00:00Z")]
struct NoMoment;

fn moment(text: &str) -> Result<i64, NoMoment> {
    let nanos = timestamp::parse_rfc3339(text).ok_or(NoMoment)?;
    i64::try_from(nanos / 1_000_000_000).map_err(|_| NoMoment)
}

/// Error for an unsupported algorithm.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("keys and signatures by {0:?} are not supported; Ed25519 is")]
struct NoAlgorithm(String);

fn algorithm(text: &str) -> Result<String, NoAlgorithm> {
    match signalbox_seal::is_supported_algorithm(text) {
        true => Ok(text.to_owned()),
        false => Err(NoAlgorithm(text.to_owned())),
    }
}
