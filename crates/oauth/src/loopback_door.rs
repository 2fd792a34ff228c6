//! A small listener on loopback for the browser of whoever signs in on this machine. It serves two pages and nothing else.

use crate::error::OauthError;
use crate::form;
use crate::oauth_desk::{CALLBACK, CONNECT, OauthDesk, Page};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

/// Largest head of a request, in bytes.
const MAX_HEAD: usize = 16 * 1024;
/// How long a browser may take to send it.
const READ_TIME: Duration = Duration::from_secs(10);
/// Most browsers at a time.
const MAX_BROWSERS: usize = 16;

/// The listener. Dropping it closes it.
pub struct LoopbackDoor {
    address: SocketAddr,
    task: AbortHandle,
}

impl LoopbackDoor {
    /// Opens the door, at this port if it is free.
    pub(crate) async fn open(desk: &Arc<OauthDesk>, port: Option<u16>) -> Result<Self, OauthError> {
        let bind = async |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
        let listener = match bind(port.unwrap_or(0)).await {
            Ok(listener) => listener,
            Err(_) => bind(0).await.map_err(|error| OauthError::Listen(error.kind()))?,
        };
        let address = listener.local_addr().map_err(|error| OauthError::Listen(error.kind()))?;
        let task = tokio::spawn(serve(listener, Arc::downgrade(desk), address)).abort_handle();
        Ok(Self { address, task })
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The address under which browsers of this machine reach it.
    #[must_use]
    pub fn base(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for LoopbackDoor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, desk: Weak<OauthDesk>, address: SocketAddr) {
    let places = Arc::new(Semaphore::new(MAX_BROWSERS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((socket, _)) = listener.accept().await else { continue };
        let desk = desk.clone();
        tokio::spawn(async move {
            let _place = place;
            let Some(desk) = desk.upgrade() else { return };
            let _ = tokio::time::timeout(READ_TIME * 3, answer(socket, &desk, address)).await;
        });
    }
}

async fn answer(mut socket: TcpStream, desk: &OauthDesk, address: SocketAddr) {
    let mut head = Vec::new();
    let reading = async {
        let mut buffer = [0; 2048];
        while !head.windows(4).any(|part| part == b"\r\n\r\n") && head.len() < MAX_HEAD {
            match socket.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(count) => head.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            }
        }
    };
    let _ = tokio::time::timeout(READ_TIME, reading).await;
    let page = match target(&head, address) {
        Some(target) => page(desk, target).await,
        None => Page::Text { status: 400, text: "This is no address of Signalbox.".to_owned() },
    };
    let _ = socket.write_all(render(&page).as_bytes()).await;
    let _ = socket.shutdown().await;
}

/// The path and query of a GET for this very address. A name that leads here, of whoever, is not ours.
fn target(head: &[u8], address: SocketAddr) -> Option<&str> {
    let text = std::str::from_utf8(head).ok()?;
    let mut lines = text.split("\r\n");
    let target = lines.next()?.strip_prefix("GET ")?.strip_suffix(" HTTP/1.1")?;
    let mut hosts = lines.filter_map(|line| line.split_once(':')).filter(|(name, _)| name.eq_ignore_ascii_case("host"));
    let host = hosts.next()?.1.trim();
    let ours = host == address.to_string() || host == format!("localhost:{}", address.port());
    (ours && hosts.next().is_none()).then_some(target)
}

/// The page at a path.
async fn page(desk: &OauthDesk, target: &str) -> Page {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match path.strip_prefix(CONNECT) {
        Some(ticket) => desk.connect(ticket),
        None if path == CALLBACK => desk.callback(form::read(query).unwrap_or_default()).await,
        None => Page::Text { status: 404, text: "There is nothing here.".to_owned() },
    }
}

fn render(page: &Page) -> String {
    // No script, no frame, no trace of the query in other places.
    let common = "content-security-policy: default-src 'none'; frame-ancestors 'none'\r\nreferrer-policy: no-referrer\r\n\
                  cache-control: no-store\r\nx-content-type-options: nosniff\r\nconnection: close\r\n";
    match page {
        Page::Redirect(url) => {
            let url: String = url.chars().filter(|c| c.is_ascii_graphic()).collect();
            format!("HTTP/1.1 302 Found\r\nlocation: {url}\r\ncontent-length: 0\r\n{common}\r\n")
        }
        Page::Text { status, text } => {
            let reason = if *status == 200 { "OK" } else { "Error" };
            format!(
                "HTTP/1.1 {status} {reason}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n{common}\r\n{text}",
                text.len()
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_c11_only_requests_for_this_very_address_are_answered() {
        let address: SocketAddr = "127.0.0.1:7000".parse().unwrap();
        let ask = |text: &str| target(text.as_bytes(), address).map(str::to_owned);
        assert_eq!(ask("GET /a?b HTTP/1.1\r\nHost: 127.0.0.1:7000\r\n\r\n").as_deref(), Some("/a?b"));
        assert!(ask("GET /a HTTP/1.1\r\nhost: localhost:7000\r\n\r\n").is_some());
        for bad in [
            "GET /a HTTP/1.1\r\nHost: evil.example:7000\r\n\r\n",
            "GET /a HTTP/1.1\r\nHost: localhost:7000\r\nHost: evil\r\n\r\n",
            "GET /a HTTP/1.1\r\n\r\n",
            "POST /a HTTP/1.1\r\nHost: 127.0.0.1:7000\r\n\r\n",
            "",
        ] {
            assert_eq!(ask(bad), None, "{bad}");
        }
    }
}
