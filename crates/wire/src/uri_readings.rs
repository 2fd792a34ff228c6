//! Interpretations of a URI by different servers.
//!
//! A server may decode a URI once, twice or not at all, split it as WHATWG, RFC 3986 or Python do, or use it as a path
//! after removing the scheme. [`UriReadings`] holds every text that a sequence of such steps produces, so that a policy
//! can check all of them. The file system is not consulted: links, case-insensitive names and short names on Windows
//! are unknown here.
//!
//! A plain URI has a single reading, itself. One pass over its bytes recognizes it.

use crate::disguised_dots::has_disguised_dots;
use crate::endpoint::without_dots;
use crate::punycode::ascii_label;
use core::net::{Ipv4Addr, Ipv6Addr};

/// Maximum length of a URI with unusual characters. Longer ones are unreadable.
pub const MAX_ODD_URI: usize = 2048;
/// Maximum number of readings of a URI. A URI with more is unreadable.
pub const MAX_READINGS: usize = 64;

/// Set of URI parts that a reading drops.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Omission(u8);

impl Omission {
    const QUERY: Self = Self(1);
    const FRAGMENT: Self = Self(2);
    const PARAMS: Self = Self(4);
    const USER: Self = Self(8);
    /// Set for a text without scheme and leading slash that is read as a path from the root folder.
    const FOLDER: Self = Self(16);

    /// Returns `true` if nothing is dropped.
    #[must_use]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Returns `true` if `other` drops everything that this reading drops.
    #[must_use]
    pub fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Interpretation of a URI.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UriReading {
    /// URI in the form that a server would use.
    pub text: String,
    /// Parts dropped from the original.
    pub omits: Omission,
}

/// Interpretations of a URI apart from the original text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UriReadings {
    /// Complete list, which may be empty.
    Known(Vec<UriReading>),
    /// The interpretations cannot be determined.
    Unreadable,
}

/// Kind of text: a URI, or a pattern of URIs with the wildcards `*` and `?`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Form {
    Uri,
    Pattern,
}

impl UriReadings {
    /// Determines the readings of a URI.
    #[must_use]
    pub fn of(uri: &str) -> Self {
        if is_plain(uri) { Self::Known(Vec::new()) } else { closure(uri, Form::Uri) }
    }

    /// Determines the readings of a URI pattern. An escape never becomes a wildcard.
    #[must_use]
    pub fn of_pattern(pattern: &str) -> Self {
        if is_plain(pattern) {
            return Self::Known(Vec::new());
        }
        let Some(ascii) = with_ascii_host(pattern) else { return closure(pattern, Form::Pattern) };
        // WHATWG converts one form into the other, so the pattern means both. URIs themselves are sent in ASCII.
        let Self::Known(mut readings) = closure(&ascii, Form::Pattern) else { return Self::Unreadable };
        readings.push(UriReading { text: normal(&ascii), omits: Omission::default() });
        Self::Known(readings)
    }
}

/// Converts the pattern's international host to ASCII. Returns `None` if the host is ASCII, or the scheme is not a
/// special one of WHATWG.
fn with_ascii_host(pattern: &str) -> Option<String> {
    let (scheme, rest) = split_scheme(pattern);
    default_port(scheme)?;
    let (authority, path) = authority_of(rest.strip_prefix("//")?);
    if authority.is_ascii() {
        return None;
    }
    let labels = authority.split('.').map(ascii_label).collect::<Option<Vec<_>>>()?;
    Some(under(scheme, &format!("//{}{path}", labels.join("."))))
}

/// Returns `true` if a URI has a control character. It must not be sent, because some servers drop the character and
/// others keep it.
#[must_use]
pub fn has_control(uri: &str) -> bool {
    // U+0080 to U+009F are encoded with 0xC2 and a byte below 0xA0. Larger second bytes are other characters of
    // Latin-1.
    let bytes = uri.as_bytes();
    let c1 = |at: usize| bytes.get(at + 1).is_some_and(|next| *next < 0xA0);
    bytes.iter().enumerate().any(|(at, byte)| byte.is_ascii_control() || (*byte == 0xC2 && c1(at)))
}

/// Returns `true` if all servers read the URI as written.
#[must_use]
pub fn is_plain(uri: &str) -> bool {
    let bytes = uri.as_bytes();
    let in_scheme = |byte: &&u8| matches!(**byte, b'a'..=b'z' | b'0'..=b'9' | b'+' | b'-' | b'.');
    let scheme = bytes.iter().take_while(in_scheme).count();
    let local = bytes.get(..scheme) == Some(b"file");
    let prefix: &[u8] = if local { b":///" } else { b"://" };
    let Some(rest) = bytes.get(scheme..).and_then(|rest| rest.strip_prefix(prefix)) else { return false };
    if scheme < 2 || !bytes.first().is_some_and(u8::is_ascii_lowercase) || rest.first().is_none_or(u8::is_ascii_digit) {
        return false;
    }
    // Number of dots since the last slash, if there was nothing else.
    let (mut dots, mut in_host, mut before) = (Some(0), !local, b'/');
    for byte in rest {
        match byte {
            b'/' if dots.is_some() || (in_host && before == b'.') => return false,
            b'/' => (dots, in_host) = (Some(0), false),
            b'.' => dots = dots.map(|dots| dots + 1).filter(|dots| *dots < 3),
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' | b'*' | b'{' | b'}' => dots = None,
            // Look-alikes of `.`, `/` and `\` begin with these.
            0xE2 | 0xEF => return false,
            b'A'..=b'Z' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'+' | b',' | b'=' | b':' | b'@' | 0x80..
                if !in_host =>
            {
                dots = None;
            }
            _ => return false,
        }
        before = *byte;
    }
    let ends_in_dots = dots.is_some_and(|dots| dots > 0) || (in_host && rest.ends_with(b"."));
    !ends_in_dots && !uri.ends_with(is_blank)
}

/// Returns `true` for characters that some server trims off a URI: whitespace, control characters, and the byte order
/// mark, which JavaScript counts as whitespace.
fn is_blank(one: char) -> bool {
    one.is_whitespace() || one.is_control() || one == '\u{feff}'
}

type Step = fn(&str, Form) -> Option<(String, Omission)>;

/// Steps that servers apply, in any order and number.
const STEPS: [Step; 13] = [
    as_written,
    unwrapped,
    decoded,
    with_slashes,
    without_fragment,
    without_query,
    without_params,
    without_user,
    without_dot_segments,
    as_path,
    without_file_host,
    on_drive,
    of_root,
];

/// Computes every text reachable by the steps.
fn closure(written: &str, form: Form) -> UriReadings {
    if written.len() > MAX_ODD_URI || is_beyond_reading(written) {
        return UriReadings::Unreadable;
    }
    let mut found = vec![UriReading { text: written.to_owned(), omits: Omission::default() }];
    let mut queue = vec![0];
    while let Some(reading) = queue.pop().and_then(|at: usize| found.get(at)).cloned() {
        for step in STEPS {
            let Some((text, omits)) = step(&reading.text, form) else { continue };
            let (text, omits) = (normal(&text), omits.and(reading.omits));
            if let Some(at) = found.iter().position(|known| known.text == text) {
                // This path drops less, so the reading must be checked as strictly as this path requires.
                if let Some(known) = found.get_mut(at).filter(|known| !known.omits.is_within(omits)) {
                    known.omits = Omission(known.omits.0 & omits.0);
                    queue.push(at);
                }
                continue;
            }
            if found.len() > MAX_READINGS || is_beyond_reading(&text) {
                return UriReadings::Unreadable;
            }
            queue.push(found.len());
            found.push(UriReading { text, omits });
        }
    }
    found.swap_remove(0);
    UriReadings::Known(found)
}

/// Returns `true` for input whose interpretations are not modelled here: NUL, a disguised `..`, a backslash before the
/// user's `@` (which ends the host for some parsers only), and for WHATWG's special schemes also international names,
/// unusual addresses and unusual ports.
fn is_beyond_reading(text: &str) -> bool {
    let (scheme, rest) = split_scheme(text);
    let after = rest.trim_start_matches(['/', '\\']);
    let until_slash = after.split(['/', '?', '#']).next().unwrap_or_default();
    let split_user = until_slash.rsplit_once('@').is_some_and(|(user, _)| user.contains('\\'));
    let host = || {
        let authority = authority_of(after).0;
        authority.rsplit_once('@').map_or(authority, |(_, host)| host)
    };
    let odd = |host: &str| {
        !host.is_ascii() || is_odd_number(host) || is_odd_address(host) || has_odd_port(host) || ends_early(host)
    };
    text.contains('\0') || has_disguised_dots(text) || split_user || (default_port(scheme).is_some() && odd(host()))
}

/// Splits a host from its port, which may be empty.
fn split_port(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (host, None),
    }
}

/// Returns `true` for a port that is not a number. Python accepts `+80`, ` 80` and `8_0`.
fn has_odd_port(host: &str) -> bool {
    let is_number = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit() || b"*?".contains(&byte));
    split_port(host).1.is_some_and(|port| !is_number(port))
}

/// Returns `true` for a host with a character that ends it for Node's `url.parse`, which takes the rest as the path.
fn ends_early(host: &str) -> bool {
    host.contains([' ', '"', '\'', '<', '>', '^', '`', '{', '|', '}'])
}

/// Returns `true` for unusual bracketed hosts: an IPv6 address with a zone, an IPv4-mapped address, or brackets within
/// a name, whose content Python takes as the host.
fn is_odd_address(host: &str) -> bool {
    let name = split_port(host).0;
    let Some(address) = name.strip_prefix('[') else { return name.contains(['[', ']']) };
    let address = address.strip_suffix(']').unwrap_or(address).parse::<Ipv6Addr>();
    address.map_or(true, |address| address.to_ipv4_mapped().is_some())
}

/// Returns `true` if a host ends in a number, as addresses do, but is not an address in the usual form.
fn is_odd_number(host: &str) -> bool {
    let host = split_port(host).0;
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    last.starts_with(|first: char| first.is_ascii_digit())
        && host.parse::<Ipv4Addr>().is_err()
        && (last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x") || last.starts_with("0X"))
}

/// Splits off the scheme without its colon. A drive letter is not a scheme. Returns an empty scheme if there is none.
fn split_scheme(text: &str) -> (&str, &str) {
    let is_scheme = |scheme: &str| {
        let starts = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
        starts && scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    text.split_once(':').filter(|(scheme, _)| is_scheme(scheme)).unwrap_or(("", text))
}

fn is_file(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("file")
}

/// Returns the default port of WHATWG's special schemes that have one.
fn default_port(scheme: &str) -> Option<&'static str> {
    let known = [("http", ":80"), ("https", ":443"), ("ws", ":80"), ("wss", ":443"), ("ftp", ":21")];
    known.into_iter().find(|(name, _)| scheme.eq_ignore_ascii_case(name)).map(|(_, port)| port)
}

/// Splits a text after the authority.
fn authority_of(text: &str) -> (&str, &str) {
    text.split_at(text.find(['/', '?', '#', '\\']).unwrap_or(text.len()))
}

/// Prepends the scheme, if there is one.
fn under(scheme: &str, rest: &str) -> String {
    if scheme.is_empty() { rest.to_owned() } else { format!("{scheme}:{rest}") }
}

/// Normalizes a text for comparison. WHATWG and Python strip whitespace and control characters around a URI, and tabs
/// and line breaks within it. RFC 3986, section 6.2.2, lowercases scheme and host, and decodes unreserved characters.
fn normal(text: &str) -> String {
    let text = text.trim_matches(is_blank).replace(['\t', '\n', '\r'], "");
    let (scheme, rest) = split_scheme(&text);
    let rest = decode(rest, &|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
    let lower = scheme.to_ascii_lowercase();
    let Some(after) = rest.strip_prefix("//") else { return under(&lower, &rest) };
    let (authority, path) = authority_of(after);
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let host = normal_host(&lower, &host.to_ascii_lowercase());
    let authority = user.map_or(host.clone(), |user| format!("{user}@{host}"));
    under(&lower, &format!("//{authority}{path}"))
}

/// Normalizes a host in lower case. Drops an empty port. For WHATWG's special schemes, also drops the default port,
/// leading zeros of a port and the dot of the root domain, and normalizes addresses.
fn normal_host(scheme: &str, host: &str) -> String {
    let (name, port) = split_port(host);
    let port = port.filter(|port| !port.is_empty());
    let Some(default) = default_port(scheme) else {
        return port.map_or(name.to_owned(), |port| format!("{name}:{port}"));
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')?.parse::<Ipv6Addr>().ok());
    let name = address.map_or_else(|| name.trim_end_matches('.').to_owned(), |address| format!("[{address}]"));
    let port = port.map(|port| port.trim_start_matches('0')).filter(|port| default.get(1..) != Some(*port));
    port.map_or(name.clone(), |port| format!("{name}:{port}"))
}

fn as_written(text: &str, _: Form) -> Option<(String, Omission)> {
    Some((text.to_owned(), Omission::default()))
}

/// Removes the wrapping that RFC 3986, appendix C, describes for URIs in text, as Python does.
fn unwrapped(text: &str, _: Form) -> Option<(String, Omission)> {
    let inner = text.strip_prefix('<').and_then(|text| text.strip_suffix('>'));
    let has_prefix = |text: &&str| text.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("url:"));
    let bare = inner.or_else(|| Some(text).filter(has_prefix)?.get(4..))?;
    Some((bare.to_owned(), Omission::default()))
}

fn decoded(text: &str, form: Form) -> Option<(String, Omission)> {
    // An escaped wildcard stays escaped, so that the pattern does not match more than written.
    Some((decode(text, &|byte| form == Form::Uri || !b"*?".contains(&byte)), Omission::default()))
}

/// Replaces backslashes, as WHATWG does for special schemes and programs on Windows do.
fn with_slashes(text: &str, _: Form) -> Option<(String, Omission)> {
    text.contains('\\').then(|| (text.replace('\\', "/"), Omission::default()))
}

fn without_fragment(text: &str, _: Form) -> Option<(String, Omission)> {
    Some((text.split_once('#')?.0.to_owned(), Omission::FRAGMENT))
}

fn without_query(text: &str, _: Form) -> Option<(String, Omission)> {
    Some((text.split_once('?')?.0.to_owned(), Omission::QUERY))
}

/// Removes segment parameters, as Python and some servers do.
fn without_params(text: &str, _: Form) -> Option<(String, Omission)> {
    let bare = |segment: &str| segment.split(';').next().unwrap_or_default().to_owned();
    text.contains(';').then(|| (text.split('/').map(bare).collect::<Vec<_>>().join("/"), Omission::PARAMS))
}

fn without_user(text: &str, _: Form) -> Option<(String, Omission)> {
    let (scheme, rest) = split_scheme(text);
    let (authority, path) = authority_of(rest.strip_prefix("//")?);
    let (_, host) = authority.rsplit_once('@')?;
    Some((under(scheme, &format!("//{host}{path}")), Omission::USER))
}

/// Removes dot segments by RFC 3986, section 5.2.4. An empty segment counts as one.
fn without_dot_segments(text: &str, _: Form) -> Option<(String, Omission)> {
    let (scheme, rest) = split_scheme(text);
    let (path, tail) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let (authority, path) = match path.strip_prefix("//") {
        Some(after) => {
            let (authority, path) = authority_of(after);
            (format!("//{authority}"), path)
        }
        None => (String::new(), path),
    };
    let path = path.starts_with('/').then(|| without_dots(path))?;
    Some((under(scheme, &format!("{authority}{path}{tail}")), Omission::default()))
}

/// Reads what follows the scheme as a path, as programs do that cut the scheme off. Repeated slashes count as one.
fn as_path(text: &str, _: Form) -> Option<(String, Omission)> {
    let (scheme, rest) = split_scheme(text);
    let mut kept: Vec<&str> = Vec::new();
    for segment in rest.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(kept.pop()),
            other => kept.push(other),
        }
    }
    let end = if rest.ends_with('/') && !kept.is_empty() { "/" } else { "" };
    let start = match scheme {
        "" if rest.starts_with('/') => "/",
        "" => "",
        _ if is_file(scheme) => "///",
        _ => "//",
    };
    Some((under(scheme, &format!("{start}{}{end}", kept.join("/"))), Omission::default()))
}

/// Drops the host of a `file:` URI, as Python does. WHATWG does so for `localhost`, and reads `C|` as a drive.
fn without_file_host(text: &str, _: Form) -> Option<(String, Omission)> {
    let (scheme, rest) = split_scheme(text);
    let path = authority_of(rest.strip_prefix("//").filter(|_| is_file(scheme))?).1;
    let path = match path.as_bytes() {
        [b'/', drive, b'|', ..] if drive.is_ascii_alphabetic() => path.replacen('|', ":", 1),
        _ => path.to_owned(),
    };
    path.starts_with('/').then(|| (format!("file://{path}"), Omission::default()))
}

/// Removes dot segments behind a drive letter. In WHATWG, `..` never removes the drive.
fn on_drive(text: &str, _: Form) -> Option<(String, Omission)> {
    let (scheme, rest) = split_scheme(text);
    let path = rest.trim_start_matches('/');
    let drive = path.chars().next().filter(|letter| is_file(scheme) && letter.is_ascii_alphabetic())?;
    let path = path.get(1..)?.strip_prefix([':', '|'])?;
    let (path, tail) = path.split_at(path.find(['?', '#']).unwrap_or(path.len()));
    let path = path.starts_with('/').then(|| without_dots(path))?;
    Some((format!("file:///{drive}:{path}{tail}"), Omission::default()))
}

/// Reads a path without a scheme as a file on the server.
fn of_root(text: &str, _: Form) -> Option<(String, Omission)> {
    let (scheme, rest) = split_scheme(text);
    let omits = if rest.starts_with('/') { Omission::default() } else { Omission::FOLDER };
    scheme.is_empty().then(|| (format!("file:///{}", rest.trim_start_matches('/')), omits))
}

/// Decodes the escapes of the `wanted` bytes once. Uppercases the other escapes.
fn decode(text: &str, wanted: &dyn Fn(u8) -> bool) -> String {
    let bytes = text.as_bytes();
    let hex = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match (hex(at + 1), hex(at + 2)) {
            (Some(high), Some(low)) if *byte == b'%' => {
                let value = u8::try_from(high * 16 + low).unwrap_or_default();
                if wanted(value) {
                    out.push(value);
                } else {
                    out.extend(format!("%{value:02X}").into_bytes());
                }
                at += 3;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What WHATWG, Node or Python read as this URI is read so, or not at all.
    #[test]
    fn unusual_hosts_ports_and_wrappings_are_read_as_servers_read_them() {
        let cases: [(&str, &[&str]); 5] = [
            (
                "file:///C:/secret/x",
                &[
                    "file:///C:/../secret/x",
                    "file:///C|/../secret/x",
                    "file:C:/../secret/x",
                    "file:///C:/..\\secret/x",
                    "file:///C:/%2e%2e/secret/x",
                    "file://localhost/C:/a/../../secret/x",
                ],
            ),
            (
                "http://host.example/private/x",
                &[
                    "http://host.example|/../private/x",
                    "http://host.example'/../private/x",
                    "http://host.example {/../private/x",
                    "http://host.example:080/private/x",
                    "http://host.example:00080/private/x",
                    "http://host.example:+80/private/x",
                    "http://host.example: 80/private/x",
                    "http://host.example:8_0/private/x",
                    "http://evil\\@host.example/private/x",
                    "http://host.example./private/x",
                    "http://host.example:/private/x",
                ],
            ),
            (
                "http://[::1]/private/x",
                &[
                    "http://[0:0:0:0:0:0:0:1]/private/x",
                    "http://,[::1]/private/x",
                    "http://[::0:1]/private/x",
                    "http://[0::1]:80/private/x",
                    "http://[::0.0.0.1]/private/x",
                    "http://[::ffff:127.0.0.1]/private/x",
                    "http://[::1%25eth0]/private/x",
                ],
            ),
            (
                "file:///private/x",
                &[
                    "\u{feff}file:///private/x",
                    "file:///private/x\u{feff}",
                    "URL:file:///private/x",
                    "<file:///private/x>",
                    "<url:file:///private/x>",
                ],
            ),
            ("db://main/private", &["db://Main:/private"]),
        ];
        for (plain, spellings) in cases {
            for spelling in spellings {
                let read = match UriReadings::of(spelling) {
                    UriReadings::Known(readings) => readings.iter().any(|reading| reading.text == plain),
                    UriReadings::Unreadable => true,
                };
                assert!(read, "{spelling} is not read as {plain}: {:?}", UriReadings::of(spelling));
            }
        }
    }

    /// A pattern with an international host means the host in ASCII too.
    #[test]
    fn patterns_with_international_hosts_mean_their_ascii_form() {
        let UriReadings::Known(readings) = UriReadings::of_pattern("http://Bücher.example/private/*") else {
            panic!("the pattern is readable")
        };
        assert!(
            readings.iter().any(|reading| reading.text == "http://xn--bcher-kva.example/private/*"),
            "{readings:?}"
        );
        assert_eq!(UriReadings::of("http://bücher.example/private/x"), UriReadings::Unreadable);
    }

    #[test]
    fn a_uri_with_a_disguised_parent_is_read_as_one_or_not_at_all() {
        for uri in [
            "file:///public/.. /private",
            "file:///public/%2e%2e%20/private",
            "file:///public/．．/private",
            "file:///public/%EF%BC%8E%EF%BC%8E/private",
            "file:///public/..／private",
            "file:///public/%c0%ae%c0%ae/private",
            "file:///public/%25c0%25ae%25c0%25ae/private",
            "file:///public/..;/private",
        ] {
            let is_read = match UriReadings::of(uri) {
                UriReadings::Known(readings) => readings.iter().any(|reading| reading.text == "file:///private"),
                UriReadings::Unreadable => true,
            };
            assert!(is_read, "{uri}: {:?}", UriReadings::of(uri));
        }
        assert_eq!(UriReadings::of("file:///notes/日本….txt"), UriReadings::Known(Vec::new()));
    }

    #[test]
    fn another_port_or_host_is_another_uri() {
        for (uri, other) in [
            ("http://host.example:8080/x", "http://host.example/x"),
            ("http://[::2]/x", "http://[::1]/x"),
            ("db://main:5432/x", "db://main/x"),
        ] {
            let UriReadings::Known(readings) = UriReadings::of(uri) else { panic!("{uri} is readable") };
            assert!(readings.iter().all(|reading| reading.text != other), "{uri} is read as {other}");
        }
    }
}
