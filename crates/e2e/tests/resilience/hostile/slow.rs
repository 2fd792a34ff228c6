//! Clients that take their time, say nothing, or say too much.

use super::raw::Raw;
use super::{fixture_config, gateway, memory, session, unharmed, works};
use signalbox_testkit::gateway::GatewayProcess;
use std::time::{Duration, Instant};
use tokio::time::sleep;

const HEAD: &str = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";

/// Sends a byte a second until the connection is cut; how long that took.
async fn trickle(mut raw: Raw, bytes: &[u8], at_most: Duration) -> Option<Duration> {
    let started = Instant::now();
    for byte in bytes.iter().cycle() {
        let (_, closed) = raw.rest(Duration::from_secs(1)).await;
        if closed || raw.write(&[*byte]).await.is_err() {
            return Some(started.elapsed());
        }
        if started.elapsed() > at_most {
            return None;
        }
    }
    None
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_clients_are_cut_and_hinder_nobody() {
    let gateway = gateway().await;
    let mut slow_heads = Vec::new();
    for begun in [HEAD, ""] {
        let mut raw = Raw::connect(gateway.address()).await.unwrap();
        raw.write(begun.as_bytes()).await.unwrap();
        slow_heads.push(tokio::spawn(trickle(raw, b"x", Duration::from_secs(15))));
    }
    let mut raw = Raw::connect(gateway.address()).await.unwrap();
    raw.write(format!("{HEAD}content-length: 1000\r\n\r\n{{").as_bytes()).await.unwrap();
    let slow_body = tokio::spawn(trickle(raw, b" ", Duration::from_secs(11)));
    let mut client = Raw::connect(gateway.address()).await.unwrap();
    let lines = session(&mut client).await;
    while !slow_heads.iter().all(tokio::task::JoinHandle::is_finished) {
        let started = Instant::now();
        works(&mut client, &lines).await;
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
        sleep(Duration::from_millis(200)).await;
    }
    for slow in slow_heads {
        let cut = slow.await.unwrap();
        assert!(cut.is_some_and(|cut| cut < Duration::from_secs(13)), "{cut:?}");
    }
    // A body has 30 s, longer than this test; until then it is only waited for.
    slow_body.await.unwrap();
    unharmed(&gateway);
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_silent_connections_hinder_nobody() {
    let gateway = gateway().await;
    let mut silent = Vec::new();
    for _ in 0..500 {
        silent.push(Raw::connect(gateway.address()).await.unwrap());
    }
    let started = Instant::now();
    let mut client = Raw::connect(gateway.address()).await.unwrap();
    let lines = session(&mut client).await;
    for _ in 0..20 {
        works(&mut client, &lines).await;
    }
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    assert!(memory(gateway.process.pid().unwrap()) < 200 * 1024);
    drop(silent);
    unharmed(&gateway);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_large_is_not_read() {
    let config = format!("[gateway]\nmax_message = 65536\n{}", fixture_config());
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    gateway.ready().await.unwrap();
    let mut raw = Raw::connect(gateway.address()).await.unwrap();
    raw.write(format!("{HEAD}content-length: 100000000\r\n\r\n").as_bytes()).await.unwrap();
    let reply = tokio::time::timeout(Duration::from_secs(3), raw.reply()).await.unwrap().unwrap();
    assert_eq!(reply.status, 413, "only the length was sent");

    let mut raw = Raw::connect(gateway.address()).await.unwrap();
    raw.write(format!("{HEAD}transfer-encoding: chunked\r\n\r\n").as_bytes()).await.unwrap();
    let chunk = [b"1000\r\n", &b"x".repeat(4096)[..], b"\r\n"].concat();
    let mut sent = 0;
    // Without an end; what is beyond the bound and the sockets' own buffers is not taken.
    while sent < 64 * 1024 * 1024 && raw.write(&chunk).await.is_ok() {
        sent += 4096;
    }
    assert!(sent < 64 * 1024 * 1024, "{sent} bytes were read");
    let large = vec![b'['; 65_537];
    let mut client = Raw::connect(gateway.address()).await.unwrap();
    assert_eq!(client.post("", &large).await.unwrap().status, 413);
    let lines = session(&mut client).await;
    works(&mut client, &lines).await;
    unharmed(&gateway);
}
