//! Nothing is found in ordinary code, prose, JSON and logs.
//!
//! The code and prose are this repository's own; JSON, logs, lock files, minified code and pictures are made from
//! seeds, so that they are the same everywhere. `MCP_TEST_CORPUS=FOLDER` looks through the texts of another folder as
//! well.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it wants")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use signalbox_secret_scan::Scanner;
use signalbox_secret_scan::made_up::Random;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Least size of the whole corpus, in bytes.
const LEAST: usize = 3_000_000;

/// Files of the repository that hold made-up credentials, since they are about them.
const ABOUT_SECRETS: &[&str] = &[
    "crates/audit/src/event_builder/tests.rs",
    "crates/assembly/src/approval_notifier.rs",
    "crates/oauth-server/src/password.rs",
    "crates/config/src/audit.rs",
    "crates/govern/src/fuzzing.rs",
    "crates/guard/src/cleaning/link_target.rs",
    "crates/guard/src/encodings/tests.rs",
    "crates/guard/src/flows/",
    "crates/guard/src/fuzzing/texts.rs",
    "crates/guard/src/privacy/tests.rs",
    "crates/guard/tests/data/ssrf_spellings.txt",
    "crates/relay/src/store/redis/",
    "crates/replay/src/baseline/tests.rs",
    "crates/rules/src/tests/",
    "crates/secret-scan/",
    "crates/config/src/tests.rs",
    "crates/config/src/tests/",
    "crates/oauth-client/src/private_key.rs",
    "crates/oauth-client/tests/grants.rs",
    "crates/seal/src/keys/",
    "crates/store/src/postgres/",
    "crates/store/tests/suite/",
    "crates/tape/src/fuzzing.rs",
    "docs/audit.md",
    "crates/tape/src/import/tests.rs",
    "crates/tape/src/recorder/",
    "crates/tape/src/redact/",
    "crates/e2e/tests/",
    "tests/guard/",
    "crates/transport/src/http_back/tests/",
    "crates/transport/src/tls/tests.rs",
];

const TEXTS: &[&str] =
    &["rs", "md", "toml", "lock", "sh", "py", "json", "js", "mjs", "ts", "txt", "yml", "yaml", "proto", "service", ""];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        let kind = entry.file_type().unwrap();
        if hidden || kind.is_symlink() || entry.file_name() == "target" {
            continue;
        }
        if kind.is_dir() {
            walk(&path, found);
        } else if TEXTS.contains(&path.extension().map(|end| end.to_string_lossy()).unwrap_or_default().as_ref()) {
            found.push(path);
        }
    }
}

/// What is found in a text, with what stands around it.
fn faults(name: &str, text: &[u8]) -> Vec<String> {
    let findings = Scanner::built_in().find(text);
    assert!(!findings.more, "{name}: too much was found");
    let shown = |start: usize, end: usize| {
        String::from_utf8_lossy(&text[start.saturating_sub(40)..(end + 10).min(text.len())]).into_owned()
    };
    let told = |found: &signalbox_secret_scan::CredentialMatch<'_>| {
        format!("{name}: {} {:?}", found.kind, shown(found.start, found.end))
    };
    findings.found.iter().map(told).collect()
}

#[test]
fn nothing_is_found_in_the_code_and_prose_of_this_repository() {
    let root = root();
    let mut files = Vec::new();
    walk(&root, &mut files);
    let (mut size, mut found) = (0, Vec::new());
    for path in files {
        let name = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
        if !ABOUT_SECRETS.iter().any(|known| name.starts_with(known)) {
            let text = fs::read(&path).unwrap();
            size += text.len();
            found.extend(faults(&name, &text));
        }
    }
    assert!(size > LEAST, "only {size} bytes of code and prose");
    assert!(found.is_empty(), "{} in {size} bytes\n{}", found.len(), found.join("\n"));
}

#[test]
fn nothing_is_found_in_another_folder_where_one_is_named() {
    let Some(folder) = std::env::var_os("MCP_TEST_CORPUS") else { return };
    let mut files = Vec::new();
    walk(Path::new(&folder), &mut files);
    let mut found = Vec::new();
    for path in files {
        let text = fs::read(&path).unwrap_or_default();
        if !text.contains(&0) {
            found.extend(faults(&path.to_string_lossy(), &text));
        }
    }
    assert!(found.is_empty(), "{}\n{}", found.len(), found.join("\n"));
}

const WORDS: &[&str] = &[
    "request",
    "token",
    "password",
    "secret",
    "key",
    "bearer",
    "authentication",
    "basic",
    "cookie",
    "session",
    "task",
    "management",
    "system",
    "overview",
    "the",
    "user",
    "of",
    "account",
    "is",
    "a",
    "for",
    "with",
    "policy",
    "changed",
    "credential",
    "api",
    "access",
    "value",
    "path",
    "server",
    "client",
    "error",
    "started",
    "stopped",
    "vault",
    "azure",
    "github",
    "datadog",
    "desk",
    "risk-free",
    "disk-usage",
    "ask-again",
    "authorization",
    "header",
    "required",
    "invalid",
];

fn sentence(random: &mut Random, length: usize) -> String {
    (0..length).map(|_| WORDS[random.below(WORDS.len())]).collect::<Vec<_>>().join(" ")
}

fn hex(random: &mut Random, length: usize) -> String {
    random.take("0123456789abcdef", length)
}

fn uuid(random: &mut Random) -> String {
    [8, 4, 4, 4, 12].map(|length| hex(random, length)).join("-")
}

fn bytes(random: &mut Random, length: usize) -> Vec<u8> {
    (0..length).map(|_| random.below(256) as u8).collect()
}

fn log_line(random: &mut Random) -> String {
    let time = format!(
        "2026-11-{:02}T{:02}:{:02}:{:02}Z",
        1 + random.below(28),
        random.below(24),
        random.below(60),
        random.below(60)
    );
    let (id, commit, words) = (uuid(random), hex(random, 40), sentence(random, 8));
    match random.below(6) {
        0 => format!("{time} INFO request_id={id} status=200 took={}ms {words}", random.below(900)),
        1 => format!("{time} WARN [{}] {words}: commit {commit}", hex(random, 16)),
        2 => format!(
            "10.0.{}.{} - - [{time}] \"GET /api/v1/users/{id}?page={}&sort=asc HTTP/1.1\" 200 {}",
            random.below(255),
            random.below(255),
            random.below(90),
            random.below(9000)
        ),
        3 => format!("{time} ERROR failed to pull registry.test/app@sha256:{}: {words}", hex(random, 64)),
        4 => format!("{time} DEBUG trace={} span={} {words}", hex(random, 32), hex(random, 16)),
        _ => format!(
            "{time} INFO connecting to https://host-{}.test:8443/path/{id} as ann@example.test, {words}",
            random.below(99)
        ),
    }
}

fn json_line(random: &mut Random) -> String {
    let (id, hash, words, count) = (uuid(random), hex(random, 64), sentence(random, 9), random.below(4096));
    let inner = format!(r#"{{\"id\":\"{id}\",\"tokenCount\":{count},\"next\":\"page-{count}\",\"note\":\"{words}\"}}"#);
    match random.below(4) {
        0 => format!(
            r#"{{"jsonrpc":"2.0","id":{count},"result":{{"content":[{{"type":"text","text":"{inner}"}}],"isError":false}}}}"#
        ),
        1 => format!(
            r#"{{"jsonrpc":"2.0","id":{count},"method":"tools/call","params":{{"name":"search","arguments":{{"q":"{words}"}},"_meta":{{"progressToken":{count}}}}}}}"#
        ),
        2 => format!(
            r#"{{"sha":"{}","sha256":"{hash}","etag":"W/\"{}\"","max_tokens":{count},"description":"{words}"}}"#,
            hex(random, 40),
            hex(random, 32)
        ),
        _ => format!(
            r#"{{"properties":{{"password":{{"type":"string"}},"token":{{"type":"string","description":"{words}"}}}},"required":["token"]}}"#
        ),
    }
}

fn lock_entry(random: &mut Random) -> String {
    let name = WORDS[random.below(WORDS.len())];
    let integrity = STANDARD.encode(bytes(random, 64));
    match random.below(3) {
        0 => format!(
            "\"node_modules/{name}\": {{ \"version\": \"1.{}.0\", \"resolved\": \"https://registry.npmjs.org/@scope/{name}/-/{name}-1.0.0.tgz\", \"integrity\": \"sha512-{integrity}\" }},",
            random.below(90)
        ),
        1 => format!("[[package]]\nname = \"{name}\"\nchecksum = \"{}\"", hex(random, 64)),
        _ => format!("{name}==1.{}.0 --hash=sha256:{}", random.below(90), hex(random, 64)),
    }
}

/// Code as a minifier leaves it.
fn minified(random: &mut Random) -> String {
    const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ$_";
    let mut out = String::new();
    for _ in 0..40 {
        let (one, other, third) = (random.take(LETTERS, 2), random.take(LETTERS, 1), random.take(LETTERS, 2));
        let word = WORDS[random.below(WORDS.len())];
        let piece = match random.below(5) {
            0 => format!("function {one}({other},{third}){{return {other}[{third}]||({other}.{word}=void 0)}}"),
            1 => format!("var {one}={other}.{word},{third}=0;"),
            2 => format!("if({one}.{word}&&!{other}){{{third}(\"{word}\",{})}}", random.below(9999)),
            3 => format!("{one}.prototype.{word}=function({other}){{this.{word}={other}}};"),
            _ => format!("case\"{word}\":{one}={other}?.{word}??null;break;"),
        };
        out.push_str(&piece);
    }
    out
}

fn picture(random: &mut Random) -> String {
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    png.extend(bytes(random, 3_000));
    format!("![x](data:image/png;base64,{})", STANDARD.encode(png))
}

#[test]
fn nothing_is_found_in_logs_json_lock_files_minified_code_and_pictures() {
    type Make = fn(&mut Random) -> String;
    let kinds: [(&str, Make, usize); 6] = [
        ("log", log_line, 4_000),
        ("json", json_line, 3_000),
        ("lock", lock_entry, 2_000),
        ("minified", minified, 200),
        ("picture", picture, 100),
        ("prose", |random| sentence(random, 60), 1_000),
    ];
    let (mut size, mut found) = (0, Vec::new());
    for (name, make, count) in kinds {
        let mut random = Random::new(name);
        let mut text = String::new();
        for _ in 0..count {
            writeln!(text, "{}", make(&mut random)).unwrap();
        }
        size += text.len();
        found.extend(faults(name, text.as_bytes()));
    }
    assert!(size > 1_500_000, "only {size} bytes");
    assert!(found.is_empty(), "{} in {size} bytes\n{}", found.len(), found.join("\n"));
}

#[test]
fn innocent_words_are_left_alone() {
    for text in [
        "task-management-system-overview",
        "Bearer authentication",
        "WWW-Authenticate: Bearer realm=\"example\", error=\"invalid_token\"",
        "the desk-booking-and-room-management-tool of the office",
        "commit 3b18e512dba79e4c8300dd08aeb37f8e728b8dad",
        "f47ac10b-58cc-4372-a567-0e02b2c3d479",
        "sha512-v2kDEe57lecTulaDIuNTPy3Ry4gLGJ6Z1O3vE1krgXZNrsQ+LFTGHVxVjcXPs17LhbZVGedAJv8XZ1tvj5FvSg==",
        "password: the password of the user",
        "let token = lexer.next_token()?;",
        "password = getpass.getpass()",
        "token: Option<String>",
        "const apiKey = process.env.API_KEY;",
        "https://example.test/a:b@c/d",
        "Basic understanding of how tokens are counted",
        "<link rel=\"me\" class=\"xoxo-indieweb-1\">",
        "hf_requiredCharacteristic",
        "hf_requiredCharacteristicNamesForTheService",
        "user = (char *) (p + 1); pwd = (char *) (p + ulen + 2);",
        "let der_pub_key: PublicKeyX509Der = key_pair.public_key();",
        "Token: \"#ddd0c0\"",
        "login(username=username, password=password)",
        "t.pass(\"tests/ui/pass/*.rs\")",
        "pub const MsV1_0ChangePassword: MSV1_0_PROTOCOL_MESSAGE_TYPE = 5;",
        "match verdict { Verdict::Pass => \"approved\", Verdict::Fail => \"refused\" }",
        "pub ImportKey: BCryptImportKeyFn,",
        "wbemErrLocalCredentials = 0x80041064,",
        "username: str\n    password: SecretStr\n",
        "METHOD can be \"trust\", \"md5\", \"password\", \"scram-sha-256\"",
        "const pubkey256 = 'SIXvRyDmBJSgatgTQRGbInBaAK+hZOQ18UmrSwnDlK8=';",
        "'ASAuthorizationAppleIDCredential', 'ASAuthorizationAppleIDProvider'",
    ] {
        assert_eq!(faults("words", text.as_bytes()), Vec::<String>::new());
    }
}
