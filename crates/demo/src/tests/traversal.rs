//! Ways out of the root, generated. Every one must be refused or stay inside.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::{Dialogue, Folder};
use crate::directory::{DirectoryList, LIMITS};
use crate::root::Root;

const CLIMBS: [&str; 24] = [
    "..",
    ".%2e",
    "%2e.",
    "%2e%2e",
    "%2E%2E",
    "%252e%252e",
    "%25252e%25252e",
    "%c0%ae%c0%ae",
    "%e0%80%ae%e0%80%ae",
    "%uff0e%uff0e",
    "..%00",
    "..\0",
    "..;",
    "...",
    "....",
    ".. ",
    " ..",
    "..\t",
    "..\n",
    "\u{ff0e}\u{ff0e}",
    "\u{2025}",
    "\u{2024}\u{2024}",
    "\u{202e}..",
    "&#46;&#46;",
];

const SEPARATORS: [&str; 11] = ["/", "//", "/./", "\\", "\\/", "%2f", "%252f", "%5c", "%c0%af", "\u{ff0f}", "\u{2215}"];

const TARGETS: [&str; 3] = ["", "secret", "etc/passwd"];

/// A root beside a folder with a canary, and links that lead from one to the other.
fn scene() -> Folder {
    let folder = Folder::new();
    for file in ["root/src/main.rs", "root/inside.txt", "secret/canary.txt", "canary.txt"] {
        folder.file(file);
    }
    let secret = folder.path().join("secret");
    for (target, name) in [
        (secret.as_path(), "root/absolute"),
        (Path::new("../secret"), "root/relative"),
        (Path::new(".."), "root/up"),
        (Path::new("../../secret"), "root/src/deep"),
        (Path::new("relative"), "root/chain"),
        (Path::new("/"), "root/slash"),
    ] {
        symlink(target, folder.path().join(name)).expect("a link");
    }
    folder
}

fn variants(folder: &Folder) -> BTreeSet<String> {
    let root = folder.path().join("root").display().to_string();
    let secret = folder.path().join("secret").display().to_string();
    let beside = format!("{root}-beside");
    let prefixes = ["", "./", "src/", "src/./", "/", "relative/", "up/", &format!("{root}/")];
    let mut all: BTreeSet<String> = [
        "relative",
        "absolute",
        "up",
        "chain",
        "slash",
        "src/deep",
        "up/secret",
        "slash/etc",
        "./up/root/src",
        "/etc",
        "/",
        "//",
        "/proc/self/root",
        "/proc/self/cwd",
        "file:///etc",
        "~",
        "~root",
        "$HOME",
        "${HOME}",
        "C:\\Windows",
        "\\\\server\\share",
        &secret,
        &beside,
    ]
    .map(str::to_owned)
    .into();
    for climb in CLIMBS {
        for separator in SEPARATORS {
            for prefix in prefixes {
                for depth in 1..=4 {
                    let up = format!("{climb}{separator}").repeat(depth);
                    all.extend(TARGETS.map(|target| format!("{prefix}{up}{target}")));
                }
                all.insert(format!("{prefix}{climb}"));
            }
        }
    }
    all
}

/// A listing may only show what is in the root.
fn stays_inside(data: &Value) -> bool {
    let inside = ["src", "main.rs", "inside.txt", "absolute", "relative", "up", "deep", "chain", "slash"];
    data["entries"]
        .as_array()
        .is_some_and(|entries| entries.iter().all(|entry| inside.iter().any(|name| entry["name"] == *name)))
}

#[test]
fn no_variant_gets_out_of_the_root() {
    let folder = scene();
    let root = Root::open(&folder.path().join("root"), None).expect("the root opens");
    let variants = variants(&folder);
    assert!(variants.len() > 10_000, "{}", variants.len());
    for path in &variants {
        let opened = root.locate(path).map(|place| place.absolute);
        assert!(opened.is_err(), "{path:?} opened {opened:?}");
    }
}

#[tokio::test]
async fn the_same_over_the_wire() {
    let folder = scene();
    let variants: Vec<String> = variants(&folder).into_iter().step_by(23).collect();
    assert!(variants.len() > 400, "{}", variants.len());
    for chunk in variants.chunks(10) {
        let mut peer = Dialogue::start(&folder.path().join("root"));
        for path in chunk {
            let arguments = json!({"path": path, "recursive": true, "include_hidden": true, "limit": 1000});
            let answer = peer.call_stateless("directory_list", arguments).await;
            let result = &answer["result"];
            assert_eq!(result["isError"], true, "{path:?}: {answer}");
            assert_ne!(result["_meta"]["signalbox/error"]["error_code"], "RateLimitExceeded");
            assert!(!answer.to_string().contains("canary"), "{path:?}");
        }
    }
}

#[tokio::test]
async fn a_walk_shows_links_out_and_does_not_take_them() {
    let folder = scene();
    let mut peer = Dialogue::start(&folder.path().join("root"));
    let arguments = json!({"path": ".", "recursive": true, "max_depth": 10, "limit": 1000});
    let answer = peer.call_stateless("directory_list", arguments).await;
    let data = &answer["result"]["structuredContent"];
    assert!(stays_inside(data), "{data}");
    assert_eq!(data["metadata"]["total_entries"], 9);
}

/// Without `O_NOFOLLOW` at every step this test fails: another thread keeps swapping a folder for a link.
#[tokio::test]
async fn a_link_swapped_in_during_the_call_is_not_followed() {
    let folder = scene();
    let root = folder.path().join("root");
    folder.file("root/flip/inside.txt");
    symlink("../secret", root.join("spare")).expect("a link");
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let (root, stop) = (root.clone(), stop.clone());
        move || {
            while !stop.load(Ordering::Relaxed) {
                for (from, to) in [("flip", "aside"), ("spare", "flip"), ("flip", "spare"), ("aside", "flip")] {
                    fs::rename(root.join(from), root.join(to)).expect("a swap");
                }
            }
        }
    });
    let tool = DirectoryList::new(Root::open(&root, None).expect("the root opens"));
    let mut listed = 0;
    for path in ["./flip", "."].into_iter().cycle().take(2000) {
        let arguments = json!({"path": path, "recursive": true, "limit": 1000});
        let outcome = tool.run(arguments.as_object().expect("an object"), LIMITS).await;
        if let Ok(answer) = outcome {
            listed += 1;
            assert!(!answer.text.contains("canary"), "{}", answer.text);
        }
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().expect("the swapper ends");
    assert!(listed > 0);
}
