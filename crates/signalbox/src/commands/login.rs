//! `signalbox login` and `signalbox logout`: a backend's token, obtained from a terminal.

use super::stdio::user;
use crate::cli::{Global, SignInArgs};
use crate::failure::Failure;
use crate::output;
use signalbox_assembly::backend_auth;
use signalbox_config::{BackendConfig, BackendTarget, Config, Overrides};
use signalbox_control::api::routes;
use signalbox_control::control_socket::tell;
use signalbox_engine::Principal;
use signalbox_oauth_client::form;
use signalbox_oauth_client::page_host::PageHost;
use signalbox_oauth_client::sign_in::SIGN_IN_TIME;
use signalbox_oauth_client::{AuthSpec, GrantType, OauthCredentials, OauthSpec, probe};
use signalbox_transport::tls::BackTlsSpec;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Signs in at a backend, and stores the token.
pub(super) fn login(global: &Global, args: &SignInArgs) -> Result<ExitCode, Failure> {
    super::quietly(global, sign_in(global, args))
}

pub(super) fn logout(global: &Global, args: &SignInArgs) -> Result<ExitCode, Failure> {
    super::quietly(global, sign_out(global, args))
}

async fn sign_in(global: &Global, args: &SignInArgs) -> Result<ExitCode, Failure> {
    let config = super::load(global, Overrides::default())?.config;
    let (backend, spec, url, tls) = protected(&config, &args.backend)?;
    if spec.grant != GrantType::SignIn {
        let text = format!("backend `{}` gets its tokens by itself; there is no sign-in", backend.name);
        return Err(Failure::Usage(text));
    }
    signalbox_assembly::data_dir::DataDir::prepare(&config.data_dir)?;
    let oauth = backend_auth::oauth(&config, PageHost::Person);
    let failed = |error| Failure::SignIn { backend: backend.name.clone(), error };
    let credentials = OauthCredentials::new(&backend.name, &url, spec, Arc::clone(&oauth));
    let challenges = probe::challenges(&url, &tls).await.map_err(failed)?;
    let (ended, mut end) = mpsc::channel(1);
    oauth.on_sign_in(move |sign_in| {
        // A second answer belongs to another sign-in, so drop it.
        let _ = ended.try_send(sign_in.outcome.map_err(ToString::to_string));
        // The command records the sign-in itself.
        None
    });
    let address = credentials.sign_in_url(&principal(args), &challenges).await.map_err(failed)?;
    match global.json {
        true => output::json(&serde_json::json!({"url": address}))?,
        false => output::result(&format!("Open this address to sign in at `{}`:\n  {address}\n", backend.name))?,
    }
    let outcome = tokio::time::timeout(SIGN_IN_TIME, end.recv()).await.map_err(|_| Failure::SignInLate)?;
    if let Some(Err(why)) = outcome {
        return Err(Failure::Usage(format!("backend `{}`: {why}", backend.name)));
    }
    // Let the result page reach the browser before the process exits.
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    output::say(format_args!("signed in at `{}`", backend.name));
    tell_gateways(global, routes::RELOAD).await;
    Ok(ExitCode::SUCCESS)
}

async fn sign_out(global: &Global, args: &SignInArgs) -> Result<ExitCode, Failure> {
    let config = super::load(global, Overrides::default())?.config;
    let (backend, spec, url, _) = protected(&config, &args.backend)?;
    let oauth = backend_auth::oauth(&config, PageHost::Person);
    let failed = |error| Failure::SignIn { backend: backend.name.clone(), error };
    let credentials = OauthCredentials::new(&backend.name, &url, spec, Arc::clone(&oauth));
    let holder = credentials.holder(&principal(args)).map_err(failed)?;
    let is_forgotten = oauth.forget(&holder).await.map_err(failed)?;
    let user = principal(args);
    let query = [("backend", backend.name.as_str()), ("user", user.as_str())];
    tell_gateways(global, &form::extend(routes::SIGNED_OUT, &query)).await;
    if !is_forgotten {
        return Err(Failure::Refused(format!("there is no token of `{}`; nothing was forgotten", backend.name)));
    }
    output::say(format_args!("forgot the token of `{}`", backend.name));
    Ok(ExitCode::SUCCESS)
}

/// Returns the principal named by `--user`, by default the local user.
fn principal(args: &SignInArgs) -> Principal {
    args.user.as_deref().map_or_else(|| Principal::local(&user()), Principal::named)
}

/// Finds a backend whose tokens come from an authorization server. Returns it with its OAuth settings, URL and TLS
/// settings.
fn protected<'a>(
    config: &'a Config,
    name: &str,
) -> Result<(&'a BackendConfig, OauthSpec, String, BackTlsSpec), Failure> {
    let backend = config.backends.iter().find(|backend| backend.name == name);
    let backend =
        backend.ok_or_else(|| Failure::Usage(format!("there is no backend `{name}` in the configuration")))?;
    let (url, tls, auth) = match &backend.target {
        BackendTarget::Url { url, tls, auth, .. } => (url.to_string(), tls.clone(), auth.as_deref()),
        _ => (String::new(), BackTlsSpec::default(), None),
    };
    match auth {
        Some(AuthSpec::Oauth(spec)) => Ok((backend, spec.as_ref().clone(), url, tls)),
        _ => {
            Err(Failure::Usage(format!("backend `{name}` has no `auth` with `type = \"oauth\"` in the configuration")))
        }
    }
}

/// Sends a request to every process of the data folder. After a sign-in, `RELOAD` has them retry backends that were
/// down for lack of a token.
async fn tell_gateways(global: &Global, route: &str) {
    let Ok((_, sockets)) = super::running(global) else { return };
    for socket in sockets {
        if let Err(error) = tell(&socket, route).await {
            tracing::debug!(%error, "a running process was not told");
        }
    }
}
