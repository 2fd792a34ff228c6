//! `signalbox proxy`: forwards one HTTP endpoint unchanged, and records all messages on a tape.

use super::serve::{FORCED, listen};
use crate::cli::{Global, ProxyArgs};
use crate::failure::Failure;
use crate::output;
use crate::transparent_tape::{MAX_MESSAGE, TransparentTape};
use signalbox_assembly::signals::Signals;
use signalbox_control::control_socket::Control;
use signalbox_engine::Caller;
use signalbox_engine::record::TapeKind;
use signalbox_transport::http1::TargetError;
use signalbox_transport::tap::HttpTap;
use signalbox_transport::tls::BackTlsSpec;
use signalbox_transport::transparent_http::Proxy;
use std::net::SocketAddr;
use std::process::ExitCode;
use tokio::sync::watch;

/// Serves until a signal arrives.
pub(super) async fn run(global: &Global, args: ProxyArgs) -> Result<ExitCode, Failure> {
    let address = SocketAddr::new(args.listen.host, args.listen.port);
    if !address.ip().is_loopback() {
        return Err(Failure::Usage(format!(
            "proxy listens on this machine only, and {address} can be reached by others; choose 127.0.0.1:PORT"
        )));
    }
    let usage = |error: TargetError| Failure::Usage(error.to_string());
    // Validate the address before opening anything.
    Proxy::new(&args.url, BackTlsSpec::default(), None).map_err(usage)?;
    let mut signals = Signals::listen().map_err(Failure::Start)?;
    let listener = listen(address).await?;
    let name = without_query(&args.url);
    let tapped = TransparentTape::begin(global, &args.to, TapeKind::Proxy, name.to_owned(), || {
        HttpTap::new(name.into(), Caller::anonymous("http"), MAX_MESSAGE)
    })?;
    let proxy = Proxy::new(&args.url, BackTlsSpec::default(), Some(tapped.feed.clone())).map_err(usage)?;
    let url = format!("http://{}{}", listener.local_addr().map_err(Failure::Start)?, proxy.path());
    let tape = tapped.shown();
    let control = tapped.control("proxy", Some(url.clone()), name.to_owned());
    if global.json {
        tracing::info!(url, to = name, tape, "passing MCP on");
    } else {
        output::say(banner(&url, name, tape));
    }
    let (stop, stopping) = watch::channel(false);
    let mut serving = std::pin::pin!(proxy.serve(listener, stopping));
    let until_done = async {
        tokio::select! {
            () = &mut serving => {}
            _ = signals.next() => {
                stop.send_replace(true);
            }
        }
        tokio::select! {
            () = &mut serving => ExitCode::SUCCESS,
            _ = signals.next() => ExitCode::from(FORCED),
        }
    };
    let code = Control::beside(control.as_ref(), until_done).await;
    tapped.end();
    Ok(code)
}

fn banner(url: &str, to: &str, tape: &str) -> String {
    format!(
        "signalbox {} passes MCP at {url} on to {to}\n  tape      {tape}\n  connect   claude mcp add --transport http proxied {url}\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// Strips the query and the fragment of an address, which may hold a secret.
fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}
