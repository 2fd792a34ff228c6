//! Reads values that several tables have: addresses, folders, headers and labels.

use super::error::{ConfigError, Problem};
use super::read::{Table, Text};
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Uri};
use std::path::{Path, PathBuf};

/// Reports a bad value, shown as the file has it.
pub(super) fn bad(table: &Table<'_>, text: &Text<'_>, expected: &str) -> ConfigError {
    let problem = Problem::BadValue { expected: expected.to_owned(), found: super::error::shown(text.raw) };
    table.document.error(&text.path, text.at, problem)
}

/// Reads a folder. A relative path is taken from the folder of the file.
pub(super) fn folder(table: &Table<'_>, key: &str) -> Result<Option<PathBuf>, ConfigError> {
    let Some(text) = table.text(key)? else {
        return Ok(None);
    };
    if text.value.is_empty() || text.value.contains('\0') {
        return Err(bad(table, &text, "the path of a folder"));
    }
    if text.value.starts_with('~') {
        return Err(bad(table, &text, "a path with `${HOME}` for `~`"));
    }
    let base = table.document.file.and_then(Path::parent).filter(|_| table.has(key));
    Ok(Some(base.map_or_else(|| PathBuf::from(&text.value), |base| base.join(&text.value))))
}

/// Reads one address of a remote server.
pub(super) fn address(table: &Table<'_>, text: &Text<'_>) -> Result<Uri, ConfigError> {
    let error = |problem| Err(table.document.error(&text.path, text.at, problem));
    let address = "an address like `http://host:port/mcp` or `ws://host:port/mcp`";
    let Ok(url) = text.value.parse::<Uri>() else {
        return error(Problem::BadHiddenValue(address));
    };
    let Some(authority) = url.authority().filter(|authority| !authority.host().is_empty()) else {
        return error(Problem::BadHiddenValue(address));
    };
    if authority.as_str().contains('@') {
        let expected = "an address without user name and password; put them into an `authorization` header";
        return error(Problem::BadHiddenValue(expected));
    }
    let port = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
    if text.value.contains('#') || (!port.is_empty() && authority.port_u16().is_none_or(|port| port == 0)) {
        return error(Problem::BadHiddenValue(address));
    }
    let secure = match url.scheme_str().map(str::to_ascii_lowercase).as_deref() {
        Some("http" | "ws") => false,
        Some("https" | "wss") => true,
        _ => return error(Problem::BadHiddenValue(address)),
    };
    if !secure && table.has("tls") {
        return Err(table.key_error("tls", Problem::Needs("an `https://` or `wss://` address in `url`")));
    }
    Ok(url)
}

/// Reads the headers that every request to a remote server gets.
pub(super) fn headers(table: &Table<'_>) -> Result<HeaderMap, ConfigError> {
    let mut headers = HeaderMap::new();
    for (entry, text) in table.text_table("headers")? {
        let at_key = |problem| Err(table.document.error(&text.path, entry.key_at, problem));
        let Ok(name) = HeaderName::from_bytes(entry.key.as_bytes()) else {
            return at_key(Problem::BadValue {
                expected: "a header name of letters, digits and `-`".to_owned(),
                found: super::error::shown(&entry.key),
            });
        };
        if is_ours(&name) {
            return at_key(Problem::ReservedHeader);
        }
        let Ok(mut value) = HeaderValue::from_str(&text.value) else {
            let problem = Problem::BadHiddenValue("a header value of visible ASCII characters on one line");
            return Err(table.document.error(&text.path, text.at, problem));
        };
        value.set_sensitive(true);
        if headers.insert(name, value).is_some() {
            return at_key(Problem::Duplicate);
        }
    }
    Ok(headers)
}

/// Returns `true` for hop-by-hop headers and for those that frame the message or belong to the protocol.
pub(super) fn is_ours(name: &HeaderName) -> bool {
    const OURS: [HeaderName; 14] = [
        header::ACCEPT,
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::CONTENT_TYPE,
        header::EXPECT,
        header::HOST,
        header::PROXY_AUTHENTICATE,
        header::PROXY_AUTHORIZATION,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        HeaderName::from_static("keep-alive"),
        HeaderName::from_static("last-event-id"),
    ];
    let ours = |prefix| name.as_str().starts_with(prefix);
    OURS.contains(name) || ours("mcp-") || ours("sec-websocket-") || name.as_str() == "proxy-connection"
}

/// Reads a word that labels backends or tools.
pub(super) fn label(table: &Table<'_>, text: Text<'_>) -> Result<String, ConfigError> {
    const LONGEST: usize = 64;
    if text.value.is_empty() || text.value.len() > LONGEST || text.value.chars().any(char::is_control) {
        return Err(bad(table, &text, "a word of 1 to 64 bytes"));
    }
    Ok(text.value)
}
