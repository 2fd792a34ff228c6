//! The rules of the house that no lint checks: file sizes, module docs, and the arrows between crates.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it wants, and says what it skipped")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Most lines of a file before its tests.
const MAX_LINES: usize = 500;

/// The pages that lead to modules. A new module at the top of a crate needs a row in docs/where.md.
const PAGES: [&str; 3] = ["ARCHITECTURE.md", "docs/where.md", "docs/internals.md"];
/// Most lines of ARCHITECTURE.md.
const MAX_PAGE_LINES: usize = 250;
/// Files that every crate may have and no page names.
const UNNAMED: [&str; 4] = ["lib", "main", "fuzzing", "tests"];
/// Crates whose modules no page has to name.
const TEST_CRATES: [&str; 4] = ["testkit", "e2e", "bench", "path"];

/// The modules that a newcomer has to understand first. Each opens with an essay: what it is for, its states, its
/// invariants, and what it must never do.
const CENTRAL: [&str; 10] = [
    "engine/src/front.rs",
    "engine/src/back.rs",
    "engine/src/chain.rs",
    "engine/src/catalog.rs",
    "engine/src/bridge.rs",
    "runtime/src/session.rs",
    "runtime/src/backend.rs",
    "tape/src/recorder.rs",
    "store/src/lib.rs",
    "transport/src/http_front.rs",
];
/// How many lines an essay has at least.
const ESSAY_LINES: usize = 20;

/// Which of our crates each crate may depend on outside its tests.
const ARROWS: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("engine", &["wire"]),
    ("runtime", &["wire", "engine", "seal"]),
    ("transport", &["wire", "engine", "runtime", "seal"]),
    ("rules", &["wire", "engine"]),
    ("store", &["engine", "seal"]),
    ("secret-scan", &[]),
    ("seal", &["wire"]),
    ("tape", &["wire", "engine", "secret-scan", "seal"]),
    ("govern", &["wire", "engine"]),
    ("guard", &["wire", "engine", "secret-scan", "seal"]),
    ("embedded", &[]),
    ("demo", &["wire", "embedded"]),
    ("replay", &["wire", "engine", "runtime", "rules", "tape"]),
    ("tape-tools", &["wire", "engine", "embedded", "tape", "replay"]),
    ("oauth-server", &["engine", "oauth-client"]),
    ("relay", &["wire", "engine", "runtime", "transport"]),
    ("oauth-client", &["wire", "engine", "runtime", "transport", "seal"]),
    ("audit", &["wire", "engine", "seal", "store", "tape"]),
    (
        "config",
        &[
            "wire",
            "engine",
            "runtime",
            "transport",
            "govern",
            "guard",
            "oauth-client",
            "rules",
            "store",
            "tape",
            "replay",
            "audit",
            "relay",
        ],
    ),
    (
        "assembly",
        &[
            "wire",
            "relay",
            "engine",
            "runtime",
            "transport",
            "oauth-client",
            "rules",
            "store",
            "seal",
            "tape",
            "config",
            "demo",
            "replay",
            "tape-tools",
            "govern",
            "guard",
            "oauth-server",
            "audit",
        ],
    ),
    (
        "control",
        &[
            "wire",
            "seal",
            "relay",
            "engine",
            "runtime",
            "transport",
            "oauth-client",
            "rules",
            "tape",
            "replay",
            "govern",
            "guard",
            "oauth-server",
            "audit",
            "config",
            "assembly",
        ],
    ),
    (
        "signalbox",
        &[
            "wire",
            "relay",
            "engine",
            "runtime",
            "transport",
            "oauth-client",
            "rules",
            "store",
            "seal",
            "tape",
            "replay",
            "govern",
            "guard",
            "guard",
            "oauth-server",
            "audit",
            "config",
            "assembly",
            "control",
        ],
    ),
    ("testkit", &[]),
    ("e2e", &[]),
    ("bench", &["wire", "engine", "runtime"]),
    ("path", &["wire", "engine", "secret-scan"]),
];

/// The same for crates that are planned: they are held to it as soon as they exist.
const COMING: &[(&str, &[&str])] = &[("console", &["control"])];

/// Crates that own no socket, task, file, clock or random source, and what must not appear in them.
const PURE: &[&str] = &["wire", "engine", "secret-scan", "guard", "oauth-server"];
const IMPURE: &[&str] = &[
    "tokio::",
    "std::net",
    "std::fs",
    "std::thread",
    "Instant::now",
    "SystemTime::now",
    "getrandom",
    "rand::",
    "std::process",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// The arrows of all crates that exist.
fn arrows() -> impl Iterator<Item = &'static (&'static str, &'static [&'static str])> {
    ARROWS.iter().chain(COMING.iter().filter(|(name, _)| root().join("crates").join(name).exists()))
}

fn sources() -> Vec<(PathBuf, String)> {
    fn walk(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    let mut found = Vec::new();
    for (name, _) in arrows() {
        walk(&root().join("crates").join(name).join("src"), &mut found);
    }
    assert!(found.len() > 50, "only {} files were found", found.len());
    found
}

/// The part of a file before its tests.
fn production(text: &str) -> &str {
    text.split("\n#[cfg(test)]").next().unwrap_or(text)
}

fn is_test_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "tests.rs") || path.components().any(|part| part.as_os_str() == "tests")
}

#[test]
fn files_are_short_documented_and_named_after_what_they_hold() {
    let mut faults = Vec::new();
    for (path, text) in sources() {
        let shown = path.strip_prefix(root()).unwrap().display().to_string();
        let lines = production(&text).lines().count();
        if lines > MAX_LINES && !is_test_file(&path) {
            faults.push(format!("{shown}: {lines} lines before its tests; {MAX_LINES} is the limit"));
        }
        if path.ends_with("lib.rs") && !text.starts_with("//!") {
            faults.push(format!("{shown}: begins without a `//!` line that says what the crate is for"));
        }
        if path.ends_with("mod.rs") {
            faults.push(format!("{shown}: name the file after its module"));
        }
        for word in ["todo!(", "unimplemented!(", ", String>> {", "Result<(), String>"] {
            if production(&text).contains(word) {
                faults.push(format!("{shown}: holds `{word}`"));
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// A reader of JSON logs cannot parse `Some(127.0.0.1)` or `["files"]`, the debug form of a value.
#[test]
fn fields_of_log_lines_are_not_in_debug_form() {
    let mut faults = Vec::new();
    for (path, text) in sources() {
        for level in ["info", "warn", "error"] {
            for logged in production(&text).split(&format!("tracing::{level}!(")).skip(1) {
                let fields = logged.split('"').next().unwrap_or_default();
                if fields.contains("= ?") || fields.trim_start().starts_with('?') || fields.contains(", ?") {
                    faults.push(format!("{}: {}", path.display(), fields.trim()));
                }
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn central_modules_open_with_an_essay() {
    for name in CENTRAL {
        let text = fs::read_to_string(root().join("crates").join(name)).unwrap();
        let lines = text.lines().take_while(|line| line.starts_with("//!")).count();
        assert!(lines >= ESSAY_LINES, "{name}: opens with {lines} lines about itself; {ESSAY_LINES} are the least");
    }
}

#[test]
fn the_core_owns_no_clock_socket_task_file_or_randomness() {
    let mut faults = Vec::new();
    for (path, text) in sources() {
        let pure = PURE.iter().any(|name| path.starts_with(root().join("crates").join(name)));
        if !pure || is_test_file(&path) {
            continue;
        }
        for word in IMPURE {
            if production(&text).contains(word) {
                faults.push(format!("{}: holds `{word}`", path.display()));
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// Proves S-73.
#[test]
fn arrows_between_crates_point_one_way() {
    for (name, allowed) in arrows() {
        let text = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap();
        let mut section = "";
        let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for line in text.lines() {
            if line.starts_with('[') {
                section = line.trim_matches(['[', ']']);
            } else if let Some(other) = line.strip_prefix("signalbox-") {
                let other = other.split([' ', '.', '=']).next().unwrap_or_default();
                found.entry(section).or_default().push(other);
            }
        }
        for other in found.get("dependencies").into_iter().flatten() {
            assert!(allowed.contains(other), "crate `{name}` must not depend on `{other}`");
        }
    }
    let crates: Vec<String> = fs::read_dir(root().join("crates"))
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    for name in crates {
        assert!(arrows().any(|(known, _)| *known == name), "crate `{name}` has no arrows in this test");
    }
}

/// Messages keep their bytes; a library that reads them into types and writes them anew would change them.
/// Proves N-4, N-29, N-40 and N-41.
#[test]
fn the_program_is_built_without_an_mcp_library() {
    for (name, _) in arrows().filter(|(name, _)| !["testkit", "e2e"].contains(name)) {
        let text = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap();
        assert!(!text.contains("rmcp"), "crate `{name}` depends on an MCP library");
    }
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

/// The paths in back quotes of a page, as crate and modules: `a::b::{c, d}` is two of them.
fn named_places(page: &str) -> Vec<(String, Vec<String>)> {
    let names: Vec<&str> = arrows().map(|(name, _)| *name).collect();
    let mut found = Vec::new();
    for quoted in page.split('`').skip(1).step_by(2) {
        // Where a folder has a hyphen, a path has an underscore.
        let named = quoted.split_once("::").map(|(krate, rest)| (krate.replace('_', "-"), rest));
        let Some((krate, rest)) = named.filter(|(krate, _)| names.contains(&krate.as_str())) else { continue };
        let (base, leaves) = rest.split_once('{').unwrap_or((rest, ""));
        let base: Vec<String> = base.split("::").filter(|part| !part.is_empty()).map(ToOwned::to_owned).collect();
        let leaves: Vec<&str> = leaves.trim_end_matches('}').split(", ").collect();
        for leaf in leaves {
            let leaf = leaf.split("::").filter(|part| !part.is_empty()).map(ToOwned::to_owned);
            found.push((krate.clone(), base.iter().cloned().chain(leaf).collect()));
        }
    }
    found
}

/// Whether a path leads to a file or folder. Its last part may be an item of the module before it.
fn is_there((krate, modules): &(String, Vec<String>)) -> bool {
    let is_module = |part: &&String| part.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit());
    let mut path = root().join("crates").join(krate).join("src");
    path.extend(modules.iter().filter(is_module));
    path.is_dir() || path.with_extension("rs").is_file()
}

#[test]
fn every_place_that_the_pages_lead_to_is_there() {
    for name in PAGES {
        let places = named_places(&page(name));
        assert!(places.len() > 10, "{name}: only {} places were found", places.len());
        let faults: Vec<String> = places
            .iter()
            .filter(|place| !is_there(place))
            .map(|(krate, modules)| format!("{krate}::{}", modules.join("::")))
            .collect();
        assert!(faults.is_empty(), "{name} names what is not there: {faults:?}");
    }
}

#[test]
fn every_module_at_the_top_of_a_crate_is_on_a_page() {
    let places = PAGES.iter().flat_map(|name| named_places(&page(name)));
    let named: BTreeSet<(String, String)> =
        places.filter_map(|(krate, modules)| Some((krate, modules.into_iter().next()?))).collect();
    let mut faults = Vec::new();
    for (path, _) in sources() {
        let parts: Vec<_> = path.strip_prefix(root().join("crates")).unwrap().iter().collect();
        let [krate, _, file] = parts[..] else { continue };
        let krate = krate.to_string_lossy().into_owned();
        let module = file.to_string_lossy().trim_end_matches(".rs").to_owned();
        let is_told = TEST_CRATES.contains(&&*krate) || UNNAMED.contains(&&*module);
        if !is_told && !named.contains(&(krate.clone(), module.clone())) {
            faults.push(format!("{krate}::{module}"));
        }
    }
    assert!(faults.is_empty(), "docs/where.md needs rows for {faults:?}");
}

#[test]
fn the_architecture_is_read_in_one_sitting() {
    let lines = page(PAGES[0]).lines().count();
    assert!(lines <= MAX_PAGE_LINES, "ARCHITECTURE.md has {lines} lines; {MAX_PAGE_LINES} is the limit");
}

/// The counts of `script/prose` may only fall.
#[test]
fn sentences_and_names_are_no_harder_to_read_than_before() {
    let done = match std::process::Command::new("python3").arg(root().join("script/prose")).arg("--check").output() {
        Ok(done) => done,
        Err(error) => {
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "python3 is not installed: {error}");
            return eprintln!("SKIP prose: python3 is not installed");
        }
    };
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{text}{}", String::from_utf8_lossy(&done.stderr));
}
