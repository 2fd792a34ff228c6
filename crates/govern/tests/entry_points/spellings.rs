//! Spellings of `file:///private/x`, and what programs open that are given one.

/// What is denied.
pub const PRIVATE: &str = "file:///private/x";
/// What is allowed.
pub const PUBLIC: &str = "file:///public/x";

/// Ways to write what is denied.
pub const OF_PRIVATE: [&str; 26] = [
    "file:///public/../private/x",
    "file:///public/..\\private/x",
    "file:///public\\..\\private\\x",
    "file:///public/..%2fprivate/x",
    "file:///public/..%5cprivate/x",
    "file:///public/%2e%2e/private/x",
    "file:///public/%252e%252e/private/x",
    "file:///public/.%09./private/x",
    "file:///public%2f..%2fprivate%2fx",
    "file:///private%2fx",
    "file:///public//../private/x",
    "file:///public/..//private/x",
    "file:///private//x",
    "file://///private/x",
    "file://localhost/private/x",
    "file://LOCALHOST/private/x",
    "file://public/../private/x",
    "file:/private/x",
    "file:////private/x",
    "file:/public/../private/x",
    "FILE:///private/x",
    " file:///private/x",
    "file:///private/x?y",
    "file:///private/x#y",
    "file:///public?/../private/x",
    "/private/x",
];

/// A generator with a seed, so that a failure can be repeated.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// This many spellings, always the same.
pub fn generated(count: usize) -> Vec<String> {
    let mut chance = Chance(0x5EED_0031);
    let starts = [
        "file:///",
        "file:///",
        "file:/",
        "file://localhost/",
        "FILE:///",
        "file:////",
        "file://",
        "file:",
        " file:///",
        "file:\\\\\\",
        "/",
        "file://LocalHost/",
    ];
    let slashes = ["/", "/", "/", "//", "/./", "%2f", "%2F", "\\", "%5c", "%252f", "/;p/", "/.;p/"];
    let ups = ["..", "..", "%2e%2e", ".%2e", "%2E.", ".%09.", "%252e%252e", "..;p"];
    let ends = ["", "", "", "?q", "#f", "/", "/.", "%20", ";p", "?q/../y", "#/../y"];
    let mut all = Vec::new();
    for _ in 0..count {
        let mut uri = chance.of(&starts).to_owned();
        for _ in 0..chance.below(3) {
            uri += &[chance.of(&["public", "public", "a", "%70ublic"]), chance.of(&slashes)].concat();
            if chance.below(4) > 0 {
                uri += &[chance.of(&ups), chance.of(&slashes)].concat();
            }
        }
        let folder = chance.of(&["private", "private", "pr%69vate", "%2570rivate", "public"]);
        uri += &[folder, chance.of(&slashes), chance.of(&["x", "%78"]), chance.of(&ends)].concat();
        all.push(uri);
    }
    all
}

/// What servers in Node open: by `fileURLToPath`, by the path of a URL, and by cutting the scheme off.
pub const NODE: &str = r"
const { fileURLToPath } = require('url'), path = require('path');
const uris = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const decoded = (text) => decodeURIComponent(text);
const ways = [
  (uri) => fileURLToPath(uri),
  (uri) => fileURLToPath(new URL(uri.trim())),
  (uri) => new URL(uri).pathname,
  (uri) => decoded(new URL(uri).pathname),
  (uri) => decoded(decoded(new URL(uri).pathname)),
  (uri) => path.win32.normalize(decoded(new URL(uri).pathname)).replaceAll('\\', '/'),
  (uri) => new URL(decoded(uri)).pathname,
  (uri) => uri.replace(/^file:\/\//, ''),
  (uri) => decoded(uri.replace(/^file:\/\//, '')),
  (uri) => decoded(uri).replace(/^file:\/*/i, '/'),
];
const read = (uri) => ways.flatMap((way) => {
  try { return [path.posix.resolve('/', way(uri))]; } catch { return []; }
});
console.log(JSON.stringify(uris.map(read)));
";

/// What servers in Python open: by `urllib`, by `pathlib`, and by cutting the scheme off.
pub const PYTHON: &str = r"
import json, os.path, sys
from pathlib import Path
from urllib.parse import unquote, urlparse, urlsplit
from urllib.request import url2pathname
ways = [
    lambda uri: urlparse(uri).path,
    lambda uri: unquote(urlparse(uri).path),
    lambda uri: unquote(unquote(urlsplit(uri).path)),
    lambda uri: url2pathname(urlparse(uri.strip()).path),
    lambda uri: urlparse(unquote(uri)).path,
    lambda uri: uri.removeprefix('file://'),
    lambda uri: unquote(uri.removeprefix('file://')),
    lambda uri: str(Path(unquote(urlparse(uri).path))),
    lambda uri: urlparse(uri).netloc + urlparse(uri).path,
    lambda uri: unquote(uri).replace('\\', '/').removeprefix('file://'),
]
def read(uri):
    paths = []
    for way in ways:
        try:
            path = os.path.normpath(os.path.join('/', way(uri)))
            paths.append('/' + path.lstrip('/'))
        except ValueError:
            pass
    return paths
print(json.dumps([read(uri) for uri in json.load(sys.stdin)]))
";

/// What servers in Rust open: by the `url` crate, and by cutting the scheme off.
pub fn rust(uri: &str) -> Vec<String> {
    let decoded = |text: &str| {
        let parts = text.replace('%', "\u{1}%");
        let one = |part: &str| match part.strip_prefix('%').and_then(|hex| u8::from_str_radix(hex.get(..2)?, 16).ok()) {
            Some(byte) => [vec![byte], part.as_bytes()[3..].to_vec()].concat(),
            None => part.as_bytes().to_vec(),
        };
        String::from_utf8_lossy(&parts.split('\u{1}').flat_map(one).collect::<Vec<u8>>()).into_owned()
    };
    let cut = uri.strip_prefix("file://").unwrap_or(uri);
    let mut paths = vec![cut.to_owned(), decoded(cut), decoded(&decoded(cut)), decoded(cut).replace('\\', "/")];
    if let Ok(url) = url::Url::parse(uri) {
        paths.extend(url.to_file_path().ok().map(|path| path.to_string_lossy().into_owned()));
        paths.extend([url.path().to_owned(), decoded(url.path())]);
    }
    paths.iter().map(|path| cleaned(path)).collect()
}

/// The absolute path that a file system makes of it.
fn cleaned(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(kept.pop()),
            other => kept.push(other),
        }
    }
    format!("/{}", kept.join("/"))
}
