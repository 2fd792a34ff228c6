//! Certificates that are made, replaced, old or broken.

use super::{echo, front, open};
use serde_json::json;
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::openssl::{Authority, EXPIRED, Trust, s_client};
use signalbox_testkit::process::{Spawned, built};
use signalbox_testkit::scene::{ask, child, eventually, status};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Command;

#[tokio::test]
async fn a_certificate_of_our_own_is_made_and_how_to_trust_it_is_said() {
    if Authority::new().await.unwrap().is_none() {
        return;
    }
    let config = "[mcp.protocol.transport.tls]\nenabled = true\nself_signed = true\n";
    let gateway = GatewayProcess::serve(config).await.unwrap();
    let ca_file = gateway.data_dir().join("tls/ca.pem").to_string_lossy().into_owned();
    let hint = format!("NODE_EXTRA_CA_CERTS={ca_file}");
    let hinted = async || gateway.process.error_lines().iter().any(|line| line.contains(&hint)).then_some(());
    eventually("how to trust it is said", hinted).await.unwrap();
    let trusting = vec!["-CAfile".to_owned(), ca_file.clone()];
    let session = open(gateway.address(), &trusting).await;
    assert!(echo(gateway.address(), &trusting, &session).await.1.contains("through TLS"));

    let before = std::fs::read(&ca_file).unwrap();
    let folder = gateway.stop().await.unwrap();
    let gateway = GatewayProcess::serve_in(folder, config).await.unwrap();
    assert_eq!(std::fs::read(&ca_file).unwrap(), before);
    open(gateway.address(), &trusting).await;
}

#[tokio::test]
async fn a_file_that_cannot_be_used_ends_the_start_with_its_name_and_reason() {
    let Some(authority) = Authority::new().await.unwrap() else { return };
    let (good, other) = tokio::join!(authority.local("server"), authority.local("other"));
    let (good, other) = (good.unwrap(), other.unwrap());
    let mut wrong = good.clone();
    wrong.key.clone_from(&other.key);
    let mut missing = good.clone();
    missing.cert = "/nowhere/cert.pem".into();
    for (issued, expected) in [
        (wrong, format!("{} is not the key of the certificate in {}", other.key.display(), good.cert.display())),
        (missing, "/nowhere/cert.pem does not exist".to_owned()),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("signalbox.toml");
        std::fs::write(&file, front(&issued, "")).unwrap();
        let mut command = Command::new(built("signalbox").unwrap());
        command.args(["serve", "--listen", "127.0.0.1:0"]).arg("-c").arg(&file).arg("--data-dir").arg(folder.path());
        let mut process = Spawned::start(command).unwrap();
        let status = process.wait(Duration::from_secs(30)).await.unwrap();
        assert_eq!(status.code(), Some(2));
        let said = async || process.error_lines().iter().any(|line| line.contains(&expected)).then_some(());
        eventually(&expected, said).await.unwrap();
    }
}

#[tokio::test]
async fn an_expired_certificate_is_warned_of() {
    let Some(authority) = Authority::new().await.unwrap() else { return };
    let expired = authority.issue("server", "DNS:localhost", EXPIRED).await.unwrap();
    let gateway = GatewayProcess::serve(&front(&expired, "")).await.unwrap();
    let warning = "the certificate has expired at 2021-01-01 00:00:00 UTC";
    // The log is written by a thread of its own.
    let warned = async || gateway.process.error_lines().iter().any(|line| line.contains(warning)).then_some(());
    eventually("the warning", warned).await.unwrap();
}

/// What a new connection is shown.
async fn subject(gateway: &GatewayProcess) -> String {
    let seen = s_client(gateway.address(), &[], "").await.unwrap();
    seen.text.lines().find(|line| line.starts_with("subject=")).unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_replaced_under_load_and_no_call_fails() {
    let Some(authority) = Authority::new().await.unwrap() else { return };
    let (used, first, second) =
        tokio::join!(authority.local("used"), authority.local("first"), authority.local("second"));
    let (used, first, second) = (used.unwrap(), first.unwrap(), second.unwrap());
    let config = format!("{}{}", front(&used, ""), child("fixture", ServedEra::Old, "").unwrap());
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let client = HttpClient::new(gateway.address()).secured(&Trust::in_authority(&authority).unwrap());
    let session = client.initialize("2025-06-18", json!({})).await.unwrap();
    let long = tokio::spawn({
        let session = session.clone();
        async move { ask(&session, "slow", json!({"ms": 8000})).await }
    });
    let stop = Arc::new(AtomicBool::new(false));
    let mut callers = Vec::new();
    for _ in 0..4 {
        let session = client.initialize("2025-06-18", json!({})).await.unwrap();
        let stop = Arc::clone(&stop);
        callers.push(tokio::spawn(async move {
            let mut calls = 0;
            while !stop.load(Ordering::Relaxed) {
                ask(&session, "greet", json!({"name": "Ann"})).await?;
                calls += 1;
            }
            anyhow::Ok(calls)
        }));
    }
    for (issued, name) in [(&first, "first"), (&second, "second"), (&first, "first")] {
        // The key comes before the certificate: in between the two do not fit.
        issued.replace(&used).unwrap();
        let shown = async || Some(subject(&gateway).await).filter(|shown| shown.ends_with(name));
        eventually(&format!("new connections see {name}"), shown).await.unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        let calls = caller.await.unwrap().unwrap();
        assert!(calls > 0, "a caller never called");
    }
    assert!(long.await.unwrap().unwrap().contains("slept"));
    let tls = status(&gateway.data_dir()).await.unwrap()["tls"].clone();
    assert!(tls["reloads"].as_u64() >= Some(3) && tls["last_error"].is_null(), "{tls}");
}

#[tokio::test]
async fn a_broken_replacement_is_told_and_the_old_certificate_stays() {
    let Some(authority) = Authority::new().await.unwrap() else { return };
    let issued = authority.local("used").await.unwrap();
    let gateway = GatewayProcess::serve(&front(&issued, "")).await.unwrap();
    let good = std::fs::read(&issued.cert).unwrap();
    std::fs::write(&issued.cert, "not a certificate").unwrap();
    let data_dir = gateway.data_dir();
    let error = eventually("the error is told", async || {
        let status = status(&data_dir).await.ok()?;
        status["tls"]["last_error"].as_str().map(str::to_owned)
    });
    let error = error.await.unwrap();
    assert!(error.contains("used.pem is not PEM"), "{error}");
    assert_eq!(subject(&gateway).await, "subject=CN = used");
    let logged = async || {
        gateway.process.error_lines().iter().any(|line| line.contains("keeping the previous ones")).then_some(())
    };
    eventually("the line in the log", logged).await.unwrap();
    std::fs::write(&issued.cert, good).unwrap();
    let healed = async || status(&data_dir).await.ok().filter(|status| status["tls"]["last_error"].is_null());
    eventually("the good file is taken again", healed).await.unwrap();
}

#[tokio::test]
async fn slow_handshakes_are_bounded_and_end() {
    let Some(authority) = Authority::new().await.unwrap() else { return };
    let issued = authority.local("server").await.unwrap();
    let config = front(&issued, "handshake_timeout = 5\nmax_handshakes = 2\n");
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let mut stuck = Vec::new();
    for _ in 0..5 {
        let mut socket = TcpStream::connect(gateway.address()).await.unwrap();
        // The beginning of a record, and nothing after it.
        socket.write_all(&[0x16, 3, 1, 2, 0]).await.unwrap();
        stuck.push(socket);
    }
    for socket in &mut stuck {
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(30), socket.read_to_end(&mut rest)).await;
        assert!(ended.is_ok(), "a handshake that does not go on is not ended");
    }
    let client = HttpClient::new(gateway.address()).secured(&Trust::in_authority(&authority).unwrap());
    let metrics = String::from_utf8(client.get("/metrics").await.unwrap().body.to_vec()).unwrap();
    let failed = |reason: &str| {
        let name = format!("signalbox_tls_handshakes_failed_total{{reason=\"{reason}\"}} ");
        metrics.lines().find_map(|line| line.strip_prefix(&name)?.parse::<u64>().ok()).unwrap_or(0)
    };
    assert_eq!(failed("timeout") + failed("crowded"), 5, "{metrics}");
    assert!(metrics.contains("\nsignalbox_tls_handshakes 0\n"), "{metrics}");
}
