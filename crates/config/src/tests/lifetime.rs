//! When the processes of backends run.

use super::{good, load};
use signalbox_runtime::{Lifetime, Start};
use std::time::Duration;

/// Issue 13, point 15.
#[test]
fn a_process_runs_from_the_start_unless_it_is_said_otherwise() {
    let of = |more: &str| good(&format!("[backends.a]\ncommand = 'x'\n{more}")).backends.remove(0).lifetime;
    assert_eq!(of(""), Lifetime { start: Start::Eager, idle_stop: None });
    assert_eq!(of("start = 'first_use'\n"), Lifetime { start: Start::FirstUse, idle_stop: None });
    let ten = Some(Duration::from_secs(600));
    assert_eq!(of("start = 'eager'\nidle_stop = '10m'\n"), Lifetime { start: Start::Eager, idle_stop: ten });
}

#[test]
fn a_remote_server_is_neither_started_nor_stopped() {
    for (key, value) in [("start", "'first_use'"), ("start", "'eager'"), ("idle_stop", "'10m'")] {
        let text = format!("[backends.a]\nurl = 'http://h/'\n{key} = {value}\n");
        let error = load("signalbox.toml", &text).unwrap_err().to_string();
        assert_eq!(error, format!("signalbox.toml:3:1: backends.a.{key}: applies only with `command`; remove it"));
    }
    let error = load("signalbox.toml", "[backends.a]\ncommand = 'x'\nidle_stop = 0\n").unwrap_err().to_string();
    assert!(error.contains("backends.a.idle_stop: expected a time such as \"30s\""), "{error}");
}
