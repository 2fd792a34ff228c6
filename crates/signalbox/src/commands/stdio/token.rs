//! Authenticates the client of `signalbox stdio` by a credential, in place of the owner of the pipe (NO-1).

use crate::failure::Failure;
use signalbox_assembly::assemble::App;
use signalbox_assembly::authentication::{self, Authentication};
use signalbox_assembly::data_dir::DataDir;
use signalbox_assembly::reload::Follower;
use signalbox_config::Config;
use signalbox_config::layers::STDIO_TOKEN;
use signalbox_engine::authenticator::Arrival;
use signalbox_engine::{Caller, Fault, FaultKind, Proof};
use signalbox_runtime::clock::unix_millis;
use signalbox_wire::{Envelope, Era};
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::task::JoinSet;

/// Maximum length of the first line of a refused client, in bytes.
const MAX_LINE: u64 = 64 * 1024;

/// Authenticated caller of a pipe, with the tasks that end its session when the credential lapses.
pub(super) struct ProvedCaller {
    pub caller: Caller,
    _watch: JoinSet<()>,
}

/// Method of authentication: the credential in [`STDIO_TOKEN`], which is read once, or else the owner of the pipe.
pub(super) enum PipeProof {
    Owner,
    Credential { credential: String, authentication: Arc<Authentication> },
}

impl PipeProof {
    /// Reads the credential, and the keys that verify it.
    ///
    /// # Errors
    /// If keys cannot be read.
    pub(super) fn load(config: &Config, data_dir: &DataDir, app: &App, owner: &Caller) -> Result<Self, Failure> {
        let credential = std::env::var(STDIO_TOKEN).unwrap_or_default();
        if credential.is_empty() {
            return Ok(Self::Owner);
        }
        let principal = owner.principal().clone();
        let authentication = Authentication::load(config, data_dir.path(), "stdio:", principal, app)?;
        Ok(Self::Credential { credential, authentication: Arc::new(authentication) })
    }

    /// Returns a follower that ends the session when a reload changes the caller's permissions.
    pub(super) fn follower(&self, app: &App) -> Follower {
        match self {
            Self::Owner => authentication::follower(app, None),
            Self::Credential { authentication, .. } => authentication::follower(app, Some(authentication)),
        }
    }

    /// Identifies the caller. Tells the client if its credential is invalid.
    ///
    /// # Errors
    /// If the credential is invalid.
    pub(super) async fn prove(&self, app: &App, owner: Caller) -> Result<ProvedCaller, Failure> {
        let Self::Credential { credential, authentication } = self else {
            return Ok(ProvedCaller { caller: owner, _watch: authentication::end_lapsed(&app.gateway) });
        };
        match identify(authentication, credential) {
            Ok(caller) => {
                app.gateway.identified(&caller);
                Ok(ProvedCaller { caller, _watch: authentication.keep_up(&app.gateway) })
            }
            Err(fault) => {
                refuse(&fault).await;
                Err(Failure::Usage(format!("{STDIO_TOKEN}: {}", fault.message)))
            }
        }
    }
}

fn identify(authentication: &Authentication, token: &str) -> Result<Caller, Fault> {
    let authorization = format!("Bearer {token}");
    let header = |name: &str| (name == "authorization").then_some(authorization.as_bytes());
    let arrival = Arrival { transport: "stdio", address: None, shown: None, header: &header, now: unix_millis() };
    let caller = authentication.authenticators().identify(&arrival)?;
    match caller.identity().proof {
        Proof::Unproved => Err(Fault::new(FaultKind::Unauthenticated, "no such credential is accepted here")),
        _ => Ok(caller),
    }
}

/// Answers the first message of the client with the error -32001.
async fn refuse(fault: &Fault) {
    let mut line = String::new();
    let mut input = BufReader::new(tokio::io::stdin().take(MAX_LINE));
    if !input.read_line(&mut line).await.is_ok_and(|read| read > 0) {
        return;
    }
    let id = Envelope::parse(line.trim().to_owned().into()).ok().and_then(|message| message.id());
    let mut reply = fault.reply(id.as_ref(), Era::Legacy).to_vec();
    reply.push(b'\n');
    let mut output = tokio::io::stdout();
    let _ = output.write_all(&reply).await;
    let _ = output.flush().await;
}
