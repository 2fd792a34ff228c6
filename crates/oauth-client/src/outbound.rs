//! Rules for outbound OAuth requests: https and public addresses, and what `[auth.outbound] allow` permits.

use crate::error::OauthError;
use bytes::Bytes;
use http::Method;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use signalbox_transport::tls::BackTlsSpec;
use signalbox_transport::web_client::{self, DialGuard, WebAnswer, WebRequest};
use signalbox_wire::address_class::{AddressClass, address_class};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

/// Entry of `[auth.outbound] allow`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AllowEntry {
    /// Host by name or address.
    Host(String),
    /// Network: address and prefix length.
    Network(IpAddr, u8),
}

/// Error for a text that is neither a host nor a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a host such as `login.example`, or a network such as `10.0.0.0/8`")]
pub struct AllowError;

impl FromStr for AllowEntry {
    type Err = AllowError;

    fn from_str(text: &str) -> Result<Self, AllowError> {
        if let Some((address, length)) = text.split_once('/') {
            let address: IpAddr = address.parse().map_err(|_| AllowError)?;
            let most = if address.is_ipv4() { 32 } else { 128 };
            let length: u8 = length.parse().map_err(|_| AllowError)?;
            return if length <= most { Ok(Self::Network(address, length)) } else { Err(AllowError) };
        }
        let inner = text.trim_start_matches('[').trim_end_matches(']');
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':');
        match !inner.is_empty() && inner.bytes().all(plain) {
            true => Ok(Self::Host(inner.to_ascii_lowercase())),
            false => Err(AllowError),
        }
    }
}

impl fmt::Display for AllowEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(name) => f.write_str(name),
            Self::Network(address, length) => write!(f, "{address}/{length}"),
        }
    }
}

impl AllowEntry {
    fn covers(&self, host: &str, address: IpAddr) -> bool {
        match self {
            Self::Host(name) => name.eq_ignore_ascii_case(host),
            Self::Network(IpAddr::V4(net), length) => {
                matches!(address, IpAddr::V4(address) if same(&net.octets(), &address.octets(), *length))
            }
            Self::Network(IpAddr::V6(net), length) => {
                matches!(address, IpAddr::V6(address) if same(&net.octets(), &address.octets(), *length))
            }
        }
    }
}

/// Returns true if two addresses agree in their first `bits` bits.
fn same(one: &[u8], other: &[u8], bits: u8) -> bool {
    let bit = |bytes: &[u8], at: u8| bytes.get(usize::from(at / 8)).map(|byte| (byte >> (7 - at % 8)) & 1);
    (0..bits).all(|at| bit(one, at) == bit(other, at))
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct OutboundSettings {
    /// Hosts and networks that may be contacted although they are not public, and without TLS.
    pub allow: Vec<AllowEntry>,
    pub tls: BackTlsSpec,
    /// The https URL of our client metadata document, if one is published.
    pub client_metadata_url: Option<String>,
    /// URL at which browsers reach this gateway, if it is not on the same machine.
    pub public_url: Option<String>,
    /// Program that prints the key of the token store, if the key is not in the data folder.
    pub key_command: Vec<String>,
}

impl DialGuard for OutboundSettings {
    fn may_dial(&self, host: &str, address: IpAddr) -> bool {
        is_public(address) || self.allow.iter().any(|entry| entry.covers(host, address))
    }

    /// Permits only hosts that the configuration names directly, or whose literal address it names.
    fn may_be_plain(&self, host: &str) -> bool {
        let literal: Option<IpAddr> = host.parse().ok();
        self.allow.iter().any(|entry| match (entry, literal) {
            (AllowEntry::Host(_), _) => entry.covers(host, Ipv4Addr::UNSPECIFIED.into()),
            (AllowEntry::Network(..), Some(address)) => entry.covers(host, address),
            (AllowEntry::Network(..), None) => false,
        })
    }
}

impl OutboundSettings {
    /// Fetches a JSON document, without credentials.
    ///
    /// # Errors
    /// If the URL may not be contacted, or the request fails.
    pub async fn get(&self, url: &str) -> Result<WebAnswer, OauthError> {
        let headers = vec![(ACCEPT, HeaderValue::from_static("application/json"))];
        let request = WebRequest { method: Method::GET, url: url.to_owned(), headers, body: Bytes::new() };
        Ok(web_client::fetch(request, self, &self.tls).await?)
    }

    /// Posts a form, with this `Authorization` if given.
    ///
    /// # Errors
    /// The same as [`Self::get`].
    pub async fn post_form(
        &self,
        url: &str,
        form: String,
        authorization: Option<HeaderValue>,
    ) -> Result<WebAnswer, OauthError> {
        self.post(url, "application/x-www-form-urlencoded", form.into(), authorization).await
    }

    /// Posts a JSON document.
    ///
    /// # Errors
    /// The same as [`Self::get`].
    pub async fn post_json(&self, url: &str, body: Bytes) -> Result<WebAnswer, OauthError> {
        self.post(url, "application/json", body, None).await
    }

    async fn post(
        &self,
        url: &str,
        kind: &'static str,
        body: Bytes,
        authorization: Option<HeaderValue>,
    ) -> Result<WebAnswer, OauthError> {
        let mut headers = vec![
            (ACCEPT, HeaderValue::from_static("application/json")),
            (CONTENT_TYPE, HeaderValue::from_static(kind)),
        ];
        headers.extend(authorization.map(|value| (AUTHORIZATION, value)));
        let request = WebRequest { method: Method::POST, url: url.to_owned(), headers, body };
        Ok(web_client::fetch(request, self, &self.tls).await?)
    }
}

/// Returns true for addresses of the public Internet. An address that embeds another one is public only if that one is.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    address_class(address) == AddressClass::Public
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_dialled() {
        let private = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:0:10.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "2001::1",
            "2001:db8::1",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ];
        for address in private {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in
            ["1.1.1.1", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"]
        {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn only_what_is_allowed_by_name_is_an_exception() {
        let none = OutboundSettings::default();
        let loopback: IpAddr = Ipv4Addr::LOCALHOST.into();
        assert!(!none.may_dial("localhost", loopback) && !none.may_be_plain("localhost"));
        let allow = ["LocalHost", "10.0.0.0/8", "fd00::/8"].map(|text| text.parse().unwrap()).to_vec();
        let some = OutboundSettings { allow, ..OutboundSettings::default() };
        assert!(some.may_dial("localhost", loopback) && some.may_be_plain("localhost"));
        assert!(!some.may_dial("evil.example", loopback) && !some.may_be_plain("evil.example"));
        assert!(some.may_dial("x", "10.9.9.9".parse().unwrap()) && !some.may_be_plain("x"));
        assert!(some.may_be_plain("10.1.1.1") && !some.may_be_plain("11.1.1.1"));
        assert!(some.may_dial("x", "fd12::1".parse().unwrap()));
        for bad in ["", "10.0.0.0/33", "a b", "http://x"] {
            assert!(bad.parse::<AllowEntry>().is_err(), "{bad}");
        }
    }
}
