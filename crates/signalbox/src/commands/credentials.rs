//! Consequences of a change to keys or users: running processes and stored tokens of backends.

use crate::cli::Global;
use crate::failure::Failure;
use crate::output;
use signalbox_config::Overrides;
use signalbox_control::api::routes;
use signalbox_control::control_socket::{AskError, tell};
use signalbox_oauth_client::Vault;

/// Has every process of the data folder read keys, users and grants again, and waits until the change is in force
/// there. Reports a process that cannot be reached: it checks the files before each request, and ends open streams
/// within a second.
pub(super) async fn announce(global: &Global) {
    let Ok((_, sockets)) = super::running(global) else { return };
    for socket in sockets {
        match tell(&socket, routes::CREDENTIALS).await {
            // `wrap` and `proxy` have no callers to authenticate.
            Ok(_) | Err(AskError::Status(http::StatusCode::NOT_FOUND)) => {}
            Err(error) => {
                output::complain(format_args!("{socket} was not told, and ends open streams a little later: {error}"));
            }
        }
    }
}

/// Deletes the tokens of backends that a principal signed in for, and returns the names of the backends. The next
/// principal of the same name would inherit them.
pub(super) async fn forget_backend_tokens(global: &Global, subject: &str) -> Result<Vec<String>, Failure> {
    let config = super::load(global, Overrides::default())?.config;
    let vault = Vault::of(&config.data_dir, config.outbound.key_command.clone());
    vault.forget_subject(subject).await.map_err(|error| Failure::Usage(format!("the tokens of backends: {error}")))
}
