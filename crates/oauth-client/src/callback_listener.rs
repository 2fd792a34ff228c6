//! Loopback listener for the browser of a person who signs in on this machine. It serves the sign-in pages and nothing
//! else.

use crate::error::OauthError;
use crate::form;
use crate::oauth_client_state::{BrowserResponse, CALLBACK, CONNECT, OauthClientState};
use crate::page_host::Place;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

/// Maximum size of a request head, in bytes.
const MAX_HEAD: usize = 16 * 1024;
/// Timeout for receiving it.
const READ_TIME: Duration = Duration::from_secs(10);
/// Maximum number of concurrent connections.
const MAX_BROWSERS: usize = 16;

/// Loopback listener. Closes when dropped.
pub struct CallbackListener {
    address: SocketAddr,
    task: AbortHandle,
}

impl CallbackListener {
    /// Opens the listener, on this port if it is free.
    pub(crate) async fn open(oauth: &Arc<OauthClientState>, port: Option<u16>) -> Result<Self, OauthError> {
        let bind = async |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
        let listener = match bind(port.unwrap_or(0)).await {
            Ok(listener) => listener,
            Err(_) => bind(0).await.map_err(|error| OauthError::Listen(error.kind()))?,
        };
        let address = listener.local_addr().map_err(|error| OauthError::Listen(error.kind()))?;
        let task = tokio::spawn(serve(listener, Arc::downgrade(oauth), address)).abort_handle();
        Ok(Self { address, task })
    }

    /// Returns the bound port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the base URL for browsers on this machine.
    #[must_use]
    pub fn base(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for CallbackListener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, oauth: Weak<OauthClientState>, address: SocketAddr) {
    let places = Arc::new(Semaphore::new(MAX_BROWSERS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((socket, _)) = listener.accept().await else { continue };
        let oauth = oauth.clone();
        tokio::spawn(async move {
            let _place = place;
            let Some(oauth) = oauth.upgrade() else { return };
            let _ = tokio::time::timeout(READ_TIME * 3, answer(socket, &oauth, address)).await;
        });
    }
}

async fn answer(mut socket: TcpStream, oauth: &OauthClientState, address: SocketAddr) {
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
    let page = match request(&head, address) {
        Some(request) => page(oauth, &request, socket.peer_addr().ok()).await,
        None => BrowserResponse::Text { status: 400, text: "This is no address of Signalbox.".to_owned() },
    };
    let _ = socket.write_all(render(&page).as_bytes()).await;
    let _ = socket.shutdown().await;
}

/// Request of a browser. Forms that are posted here have no fields.
#[derive(PartialEq, Eq, Debug)]
struct BrowserRequest<'a> {
    is_post: bool,
    /// Target of the request: path and query.
    target: &'a str,
    cookies: String,
}

/// Parses a request for this exact address. Rejects other hosts, which guards against DNS rebinding, and forms of other
/// origins.
fn request(head: &[u8], address: SocketAddr) -> Option<BrowserRequest<'_>> {
    let text = std::str::from_utf8(head).ok()?;
    let mut lines = text.split("\r\n");
    let (method, rest) = lines.next()?.split_once(' ')?;
    let target = rest.strip_suffix(" HTTP/1.1")?;
    let fields: Vec<(&str, &str)> =
        lines.filter_map(|line| line.split_once(':')).map(|(name, value)| (name, value.trim())).collect();
    let all = |wanted: &str| -> Vec<&str> {
        fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| *value).collect()
    };
    let is_ours = |host: &str| host == address.to_string() || host == format!("localhost:{}", address.port());
    let &[host] = all("host").as_slice() else { return None };
    let is_own_form = all("origin").iter().all(|origin| origin.strip_prefix("http://").is_some_and(is_ours));
    let is_known = method == "GET" || (method == "POST" && is_own_form);
    (is_known && is_ours(host)).then(|| BrowserRequest {
        is_post: method == "POST",
        target,
        cookies: all("cookie").join(";"),
    })
}

/// Returns the page at a path. A browser cannot authenticate here, so the person is asked to confirm.
async fn page(oauth: &OauthClientState, request: &BrowserRequest<'_>, browser: Option<SocketAddr>) -> BrowserResponse {
    let (path, query) = request.target.split_once('?').unwrap_or((request.target, ""));
    let ticket = path.strip_prefix(CONNECT);
    if ticket.is_some_and(|ticket| oauth.holder(ticket, Place::Loopback).is_none()) {
        oauth.report_stray_link(if request.is_post { "POST" } else { "GET" }, browser);
    }
    match ticket {
        Some(ticket) if request.is_post => oauth.confirm(ticket, Place::Loopback, &request.cookies),
        Some(ticket) => oauth.connect(ticket, Place::Loopback, false),
        None if path == CALLBACK && !request.is_post => {
            oauth.callback(form::read(query).unwrap_or_default(), Place::Loopback, &request.cookies).await
        }
        None => BrowserResponse::Text { status: 404, text: "There is nothing here.".to_owned() },
    }
}

fn render(page: &BrowserResponse) -> String {
    let common: String = page.guards().map(|(name, value)| format!("{name}: {value}\r\n")).concat();
    let common = format!("{common}connection: close\r\n");
    let set = |cookie: &str| format!("set-cookie: {cookie}\r\n");
    match page {
        BrowserResponse::Redirect { url, cookie } => {
            let url: String = url.chars().filter(|c| c.is_ascii_graphic()).collect();
            let cookie = cookie.as_deref().map(set).unwrap_or_default();
            format!("HTTP/1.1 303 See Other\r\nlocation: {url}\r\ncontent-length: 0\r\n{cookie}{common}\r\n")
        }
        BrowserResponse::Ask { html, cookie } => {
            let (cookie, length) = (set(cookie), html.len());
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {length}\r\n{cookie}{common}\r\n{html}"
            )
        }
        BrowserResponse::Text { status, text } => {
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
    use crate::outbound::OutboundSettings;
    use crate::page_host::PageHost;
    use crate::vault::Vault;
    use std::sync::Mutex;

    #[tokio::test]
    async fn a_guessed_link_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let oauth =
            OauthClientState::new(OutboundSettings::default(), Vault::of(folder.path(), Vec::new()), PageHost::Person);
        let (told, browser) = (Arc::new(Mutex::new(Vec::new())), "127.0.0.1:9".parse().ok());
        let reported = Arc::clone(&told);
        oauth.on_stray_link(move |method, browser| reported.lock().unwrap().push((method, browser)));
        for (target, is_post) in [("/auth/connect/guess?x", false), ("/auth/connect/", true), ("/else", false)] {
            let asked = BrowserRequest { is_post, target, cookies: String::new() };
            assert!(
                matches!(page(&oauth, &asked, browser).await, BrowserResponse::Text { status: 404, .. }),
                "{target}"
            );
        }
        assert_eq!(*told.lock().unwrap(), [("GET", browser), ("POST", browser)]);
    }

    #[test]
    fn only_requests_for_this_very_address_are_answered() {
        let address: SocketAddr = "127.0.0.1:7000".parse().unwrap();
        let ask = |text: &str| request(text.as_bytes(), address).map(|request| request.target.to_owned());
        assert_eq!(ask("GET /a?b HTTP/1.1\r\nHost: 127.0.0.1:7000\r\n\r\n").as_deref(), Some("/a?b"));
        assert!(ask("GET /a HTTP/1.1\r\nhost: localhost:7000\r\n\r\n").is_some());
        for bad in [
            "GET /a HTTP/1.1\r\nHost: evil.example:7000\r\n\r\n",
            "GET /a HTTP/1.1\r\nHost: localhost:7000\r\nHost: evil\r\n\r\n",
            "GET /a HTTP/1.1\r\n\r\n",
            "PUT /a HTTP/1.1\r\nHost: 127.0.0.1:7000\r\n\r\n",
            "POST /a HTTP/1.1\r\nHost: 127.0.0.1:7000\r\nOrigin: https://evil.example\r\n\r\n",
            "POST /a HTTP/1.1\r\nHost: 127.0.0.1:7000\r\nOrigin: null\r\n\r\n",
            "",
        ] {
            assert_eq!(ask(bad), None, "{bad}");
        }
        let own = "POST /a HTTP/1.1\r\nHost: 127.0.0.1:7000\r\nOrigin: http://127.0.0.1:7000\r\nCookie: a=b\r\ncookie: c=d\r\n\r\n";
        let own = request(own.as_bytes(), address).unwrap();
        assert_eq!((own.is_post, own.target, own.cookies.as_str()), (true, "/a", "a=b;c=d"));
    }
}
