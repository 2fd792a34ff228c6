//! The headers of a POST that every call needs, collected in one pass.

use super::accepts::Accepts;
use super::service::revision_in;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use signalbox_wire::header::{self, HeaderValues};
use signalbox_wire::{Era, Revision};

/// The headers of a POST that every call needs.
pub struct Heads<'a> {
    all: &'a HeaderMap,
    /// First value of `Content-Type`.
    pub content_type: Option<&'a HeaderValue>,
    accept: Option<&'a HeaderValue>,
    /// First value of `MCP-Protocol-Version`.
    pub version: Option<&'a HeaderValue>,
    /// Revision in `version`, if known.
    pub spoken: Option<Revision>,
    versions: HeaderValues<'a>,
    /// All values of `Mcp-Session-Id`.
    pub session: HeaderValues<'a>,
    method: HeaderValues<'a>,
    name: HeaderValues<'a>,
}

impl<'a> Heads<'a> {
    pub fn read(all: &'a HeaderMap) -> Self {
        let missing = HeaderValues::Missing;
        let mut heads = Self {
            all,
            content_type: None,
            accept: None,
            version: None,
            spoken: None,
            versions: missing,
            session: missing,
            method: missing,
            name: missing,
        };
        for (name, value) in all {
            let slot = match name.as_str() {
                header::PROTOCOL_VERSION => {
                    if heads.version.is_none() {
                        (heads.version, heads.spoken) = (Some(value), revision_in(value));
                    }
                    &mut heads.versions
                }
                header::SESSION_ID => &mut heads.session,
                header::METHOD => &mut heads.method,
                header::NAME => &mut heads.name,
                _ if name == CONTENT_TYPE => {
                    heads.content_type = heads.content_type.or(Some(value));
                    continue;
                }
                _ if name == ACCEPT => {
                    heads.accept = heads.accept.or(Some(value));
                    continue;
                }
                _ => continue,
            };
            *slot = match slot {
                HeaderValues::Missing => HeaderValues::One(value.as_bytes()),
                HeaderValues::One(_) | HeaderValues::Many => HeaderValues::Many,
            };
        }
        heads
    }

    /// Returns the response formats that the client accepts.
    pub fn accepts(&self) -> Accepts {
        Accepts::usual(self.accept).unwrap_or_else(|| Accepts::read(self.all))
    }

    /// Returns `true` if the version header names a modern revision.
    pub fn speaks_modern(&self) -> bool {
        self.spoken.is_some_and(|revision| revision.era() == Era::Modern)
    }

    /// Returns the values of a header by its lower-case name.
    pub fn look_up(&self, name: &str) -> HeaderValues<'a> {
        match name {
            header::PROTOCOL_VERSION => self.versions,
            header::SESSION_ID => self.session,
            header::METHOD => self.method,
            header::NAME => self.name,
            _ => self.all.get_all(name).iter().map(HeaderValue::as_bytes).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

    /// The same, asked for by name.
    fn slowly<'a>(all: &'a HeaderMap, name: &str) -> HeaderValues<'a> {
        all.get_all(name).iter().map(HeaderValue::as_bytes).collect()
    }

    #[test]
    fn one_walk_finds_what_asking_by_name_does() {
        let lists: &[&[(&str, &str)]] = &[
            &[],
            &[("mcp-session-id", "s"), ("mcp-method", "m"), ("mcp-name", "n"), ("mcp-protocol-version", "2026-07-28")],
            &[
                ("mcp-session-id", "s"),
                ("mcp-session-id", "t"),
                ("accept", "text/html"),
                ("accept", "application/json"),
            ],
            &[("mcp-protocol-version", "2025-06-18"), ("mcp-protocol-version", "2026-07-28"), ("mcp-param-x", "1")],
            &[("accept", "application/json, text/event-stream"), ("content-type", "a/b"), ("content-type", "c/d")],
        ];
        for list in lists {
            let mut all = HeaderMap::new();
            for (name, value) in *list {
                all.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
            }
            let heads = Heads::read(&all);
            for name in ["mcp-protocol-version", "mcp-session-id", "mcp-method", "mcp-name", "mcp-param-x", "x"] {
                assert_eq!(heads.look_up(name), slowly(&all, name), "{list:?} {name}");
            }
            assert_eq!(heads.content_type, all.get(CONTENT_TYPE));
            assert_eq!(heads.version, all.get(header::PROTOCOL_VERSION));
            assert_eq!(heads.accepts(), Accepts::read(&all));
        }
    }
}
