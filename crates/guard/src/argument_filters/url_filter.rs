//! URLs that lead into private networks, to metadata services, or to something else than the web.

use super::finding::{FilterKind, FindingRisk, SsrfTarget, Violation};
use super::host_readings::check_host;
use super::path_filter::check_path;
use super::text_readings::text_readings;

/// Maximum number of query parameters that are checked for URLs.
const MAX_PARAMETERS: usize = 64;
/// Schemes of the web and of its variants.
const WEB_SCHEMES: [&str; 4] = ["http", "https", "ws", "wss"];
/// Schemes of repositories and databases, whose hosts count but whose scheme does not.
const HOST_SCHEMES: [&str; 21] = [
    "ssh",
    "git",
    "git+ssh",
    "git+https",
    "git+http",
    "svn",
    "svn+ssh",
    "ftp",
    "ftps",
    "sftp",
    "postgres",
    "postgresql",
    "mysql",
    "redis",
    "rediss",
    "mongodb",
    "mongodb+srv",
    "amqp",
    "amqps",
    "s3",
    "view-source",
];
/// Schemes with which clients read local files, run programs or send chosen bytes to any port.
const DANGEROUS_SCHEMES: [&str; 29] = [
    "gopher",
    "dict",
    "ldap",
    "ldaps",
    "ldapi",
    "jar",
    "netdoc",
    "phar",
    "php",
    "expect",
    "tftp",
    "ssh2",
    "zip",
    "zlib",
    "compress.zlib",
    "glob",
    "ogg",
    "rar",
    "smb",
    "cifs",
    "telnet",
    "imap",
    "imaps",
    "pop3",
    "smtp",
    "rtsp",
    "ext",
    "local_file",
    "rmi",
];
/// Schemes that run a script in a browser.
const SCRIPT_SCHEMES: [&str; 2] = ["javascript", "vbscript"];

fn ssrf(target: SsrfTarget, risk: FindingRisk, reason: &'static str) -> Violation {
    Violation::new(FilterKind::Ssrf(target), risk, reason)
}

/// Checks every reading of a URL. Returns the worst violation.
pub(super) fn check_url(value: &str) -> Option<Violation> {
    let readings = text_readings(value);
    let (written, decoded) = readings.split_first()?;
    let found = check_reading(written);
    let is_whole = split_scheme(&normal(written)).is_some();
    // A URL that is encoded as a whole has no scheme as written. Otherwise only parts are encoded, and its host and
    // its parameters are decoded one by one.
    let hidden =
        if is_whole { None } else { decoded.iter().find_map(|text| check_reading(text).map(Violation::disguised)) };
    worst([found, hidden])
}

fn worst(found: impl IntoIterator<Item = Option<Violation>>) -> Option<Violation> {
    found.into_iter().flatten().reduce(|worst, other| if other.risk > worst.risk { other } else { worst })
}

/// Scheme in lower case and what follows its colon.
struct SchemeSplit<'a> {
    scheme: String,
    rest: &'a str,
}

/// Splits off a scheme. `localhost:8080` has none.
fn split_scheme(text: &str) -> Option<SchemeSplit<'_>> {
    let (scheme, rest) = text.split_once(':')?;
    let starts = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
    let is_scheme = starts
        && scheme.len() > 1
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-._".contains(&byte));
    let is_web = WEB_SCHEMES.iter().any(|web| scheme.eq_ignore_ascii_case(web));
    let is_port = !is_web && rest.starts_with(|first: char| first.is_ascii_digit());
    (is_scheme && !is_port).then(|| SchemeSplit { scheme: scheme.to_ascii_lowercase(), rest })
}

/// Returns a URL as browsers read it: trimmed, without tabs and line breaks, without wrapping.
fn normal(text: &str) -> String {
    let blank = |char: char| char.is_whitespace() || char.is_control() || char == '\u{feff}';
    let text = text.trim_matches(blank).replace(['\t', '\n', '\r'], "");
    let inner = text.strip_prefix('<').and_then(|text| text.strip_suffix('>')).unwrap_or(&text);
    let is_marked = inner.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("url:"));
    (if is_marked { inner.get(4..).unwrap_or_default() } else { inner }).to_owned()
}

fn check_reading(text: &str) -> Option<Violation> {
    let text = normal(text);
    let Some(split) = split_scheme(&text) else {
        // A path of this server's origin leads nowhere else.
        let is_path = text.starts_with(['/', '\\', '.', '?', '#'])
            && !text.starts_with("//")
            && !text.starts_with("\\\\")
            && !text.starts_with("/\\");
        let address = text.trim_start_matches(['/', '\\']);
        return if is_path {
            check_parameters(&text)
        } else {
            worst([check_authority(address), check_parameters(&text)])
        };
    };
    let scheme = split.scheme.as_str();
    let known = |schemes: &[&str]| schemes.contains(&scheme);
    if scheme == "file" {
        let path = check_path(&text).map(|found| ssrf(SsrfTarget::Scheme, found.risk, found.reason));
        return worst([Some(ssrf(SsrfTarget::Scheme, FindingRisk::Medium, "URL of a local file")), path]);
    }
    if known(&DANGEROUS_SCHEMES) {
        return Some(ssrf(
            SsrfTarget::Scheme,
            FindingRisk::High,
            "URL whose scheme runs programs, reads files or reaches any port",
        ));
    }
    if known(&SCRIPT_SCHEMES) {
        return Some(ssrf(SsrfTarget::Scheme, FindingRisk::Medium, "URL that runs a script"));
    }
    let address = split.rest.trim_start_matches(['/', '\\']);
    // The scheme of a wrapper is followed by another URL.
    if split_scheme(address).is_some_and(|inner| WEB_SCHEMES.contains(&inner.scheme.as_str()) || inner.scheme == "file")
        && scheme != "http"
        && scheme != "https"
    {
        return check_plain(address);
    }
    if known(&WEB_SCHEMES) || (known(&HOST_SCHEMES) && split.rest.starts_with("//")) {
        return worst([check_authority(address), check_parameters(address)]);
    }
    None
}

/// Checks a URL within another one, which holds no further one.
fn check_plain(text: &str) -> Option<Violation> {
    let split = split_scheme(text)?;
    let address = split.rest.trim_start_matches(['/', '\\']);
    match split.scheme.as_str() {
        "file" => Some(ssrf(SsrfTarget::Scheme, FindingRisk::Medium, "URL of a local file")),
        scheme if DANGEROUS_SCHEMES.contains(&scheme) => Some(ssrf(
            SsrfTarget::Scheme,
            FindingRisk::High,
            "URL whose scheme runs programs, reads files or reaches any port",
        )),
        scheme if WEB_SCHEMES.contains(&scheme) => check_authority(address),
        _ => None,
    }
}

/// Checks the host under each rule that parsers have for its beginning and its end.
fn check_authority(address: &str) -> Option<Violation> {
    let whatwg = host_of(address, &['/', '\\', '?', '#'], true);
    let rfc = host_of(address, &['/', '?', '#'], true);
    let others = [
        host_of(address, &['/'], true),
        host_of(address, &['/', '\\', '?', '#', ' '], false),
        host_of(address, &['/', '\\', '?', '#', ' ', '@'], true),
    ];
    // Without `@`, parsers that disagree on the end of the host find no other host.
    let signs = address.chars().take_while(|char| !matches!(char, '/' | '?' | '#')).filter(|char| *char == '@').count();
    let is_unclear = signs > 1 || (signs > 0 && whatwg != rfc);
    let unclear =
        is_unclear.then(|| ssrf(SsrfTarget::Ambiguous, FindingRisk::Medium, "URL whose host depends on the parser"));
    let found = check_host(whatwg);
    let alternatives = [rfc].into_iter().chain(others).filter(|host| *host != whatwg);
    let hidden = alternatives
        .filter_map(check_host)
        .filter(|found| found.risk > FindingRisk::Low || is_unclear)
        .map(Violation::disguised);
    // A name before `@` that is itself a host makes a reader believe that it is the one.
    let mistaken = address.split(['/', '?', '#', '\\']).next().and_then(|authority| authority.rsplit_once('@'));
    let is_mistaken = mistaken.is_some_and(|(user, _)| user.split(':').next().is_some_and(|user| user.contains('.')));
    let found = if is_mistaken { found.map(Violation::disguised) } else { found };
    let userinfo =
        is_mistaken.then(|| ssrf(SsrfTarget::Ambiguous, FindingRisk::Low, "URL with a host name before the host"));
    worst([found, unclear, userinfo].into_iter().chain(hidden.map(Some)))
}

/// Returns the host before the first of these characters, after the last or the first `@`, without its port.
fn host_of<'a>(address: &'a str, ends: &[char], last: bool) -> &'a str {
    let authority = address.split(|char| ends.contains(&char)).next().unwrap_or_default();
    let parts = if last { authority.rsplit_once('@') } else { authority.split_once('@') };
    let host = parts.map_or(authority, |(_, host)| host);
    let bracket = host.rfind(']').map_or(0, |at| at + 1);
    let (name, port) = host.split_at(bracket);
    // A bare address of version 6 has several colons and no port.
    if bracket == 0 && port.matches(':').count() > 1 && port.parse::<core::net::Ipv6Addr>().is_ok() {
        return port;
    }
    let end = bracket + port.find(':').unwrap_or(port.len());
    if bracket > 0 && !name.starts_with('[') {
        host.get(name.find('[').unwrap_or(0)..end).unwrap_or(host)
    } else {
        host.get(..end).unwrap_or(host)
    }
}

/// Checks parameters that hold a URL, to which a server may redirect.
fn check_parameters(text: &str) -> Option<Violation> {
    let (_, query) = text.split_once(['?', '#'])?;
    let values = query
        .split(['&', ';', '#', '?'])
        .take(MAX_PARAMETERS)
        .filter_map(|pair| pair.split_once('='))
        .map(|(_, value)| value);
    let found = values.filter_map(|value| {
        let readings = text_readings(value);
        let urls = readings.iter().map(|text| normal(text));
        urls.filter_map(|url| match url.strip_prefix("//").or_else(|| url.strip_prefix("\\\\")) {
            Some(address) => check_authority(address),
            None => check_plain(&url),
        })
        // A redirect back to a server on this machine is how programs sign in.
        .find(|found| found.kind != FilterKind::Ssrf(SsrfTarget::Ambiguous))
    });
    worst(found.map(Some))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Option<(SsrfTarget, FindingRisk)> {
        match check_url(url)? {
            Violation { kind: FilterKind::Ssrf(target), risk, .. } => Some((target, risk)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn urls_of_the_web_pass() {
        for url in [
            "",
            "https://example.com",
            "https://example.com/a?b=c#d",
            "example.com/a",
            "/a/b?c=d",
            "https://medium.com/@ada/post",
            "https://user@example.com/a",
            "http://8.8.8.8/",
            "https://example.com/?mail=a@b.example",
            "https://example.com/login?next=%2Fhome",
            "https://example.com/?u=https%3A%2F%2Fother.example%2F",
            "mailto:ada@example.com",
            "git@github.com:a/b.git",
            "ssh://git@github.com/a/b",
            "https://github.com/a/b.git",
            "data:text/plain,hi",
            "about:blank",
            "urn:x:y",
            "https://bücher.example/é",
            "https://[2606:4700::1111]/",
            "https://example.com/a%2Fb",
            "#top",
            "https://a.example/x y",
        ] {
            assert_eq!(target(url), None, "{url}");
        }
    }

    #[test]
    fn other_destinations_are_found() {
        use FindingRisk::{High, Low, Medium};
        use SsrfTarget::{Ambiguous, Loopback, Metadata, Private, Scheme};
        for (url, expected) in [
            ("http://localhost:3000/", (Loopback, Low)),
            ("localhost:8080", (Loopback, Low)),
            ("//127.0.0.1/x", (Loopback, Low)),
            ("http://2130706433/", (Loopback, High)),
            ("http:127.0.0.1", (Loopback, Low)),
            ("http:\\\\127.1\\", (Loopback, High)),
            ("http://169.254.169.254/latest/meta-data/", (Metadata, High)),
            ("169.254.169.254/latest", (Metadata, High)),
            ("http%3A%2F%2F169.254.169.254%2F", (Metadata, High)),
            ("http://[fd00:ec2::254]/", (Metadata, High)),
            ("http://10.0.0.1:8080/", (Private, Medium)),
            ("https://google.com@169.254.169.254/", (Metadata, High)),
            ("http://example.com@127.0.0.1/", (Loopback, High)),
            ("http://127.0.0.1\\@example.com/", (Loopback, Low)),
            ("http://example.com\\@10.0.0.1/", (Private, High)),
            ("http://example.com#@10.0.0.1/", (Private, High)),
            ("http://a.example@b.example/", (Ambiguous, Low)),
            ("http://1.1.1.1 &@10.2.2.2# @3.3.3.3/", (Private, High)),
            ("https://a.example/r?url=http%3A%2F%2F169.254.169.254%2F", (Metadata, High)),
            ("https://a.example/r?url=http%253A%252F%252F169.254.169.254%252F", (Metadata, High)),
            ("https://a.example/r?to=//10.0.0.1/", (Private, Medium)),
            ("https://a.example/cb?redirect_uri=http://localhost:1/", (Loopback, Low)),
            ("gopher://127.0.0.1:6379/_FLUSHALL", (Scheme, High)),
            ("dict://x:1/", (Scheme, High)),
            ("jar:http://x!/y", (Scheme, High)),
            ("file:///etc/passwd", (Scheme, High)),
            ("file:///srv/x", (Scheme, Medium)),
            ("FILE:/srv/x", (Scheme, Medium)),
            ("php://filter/read=convert.base64-encode/resource=x", (Scheme, High)),
            ("ext::sh -c x", (Scheme, High)),
            ("javascript:alert(1)", (Scheme, Medium)),
            ("ht\ntp://169.254.169.254/", (Metadata, High)),
            (" \u{1}http://169.254.169.254/", (Metadata, High)),
            ("<url:http://169.254.169.254/>", (Metadata, High)),
            ("view-source:http://169.254.169.254/", (Metadata, High)),
            ("ftp://10.0.0.1/x", (Private, Medium)),
        ] {
            let found = target(url);
            let disguised = expected.0 == Loopback && found.is_some_and(|found| found.1 > expected.1);
            assert!(found == Some(expected) || disguised, "{url}: {found:?}");
        }
    }
}
