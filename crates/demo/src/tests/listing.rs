//! `directory_list`, row by row.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::{Value, json};

use super::{Dialogue, Folder};

/// Lists without a session and returns the result.
async fn list(root: &Path, arguments: Value) -> Value {
    let mut peer = Dialogue::start(root);
    let mut answer = peer.call_stateless("directory_list", arguments).await;
    answer["result"].take()
}

async fn names(root: &Path, arguments: Value) -> Vec<String> {
    let result = list(root, arguments).await;
    let entries = result["structuredContent"]["entries"].as_array().unwrap_or_else(|| panic!("{result}"));
    entries.iter().map(|entry| entry["name"].as_str().expect("a name").to_owned()).collect()
}

async fn code(root: &Path, arguments: Value) -> String {
    let result = list(root, arguments).await;
    assert_eq!(result["isError"], true, "{result}");
    assert!(result.get("structuredContent").is_none());
    let error = &result["_meta"]["signalbox/error"];
    assert!(error["details"]["reason"].is_string() && error["details"]["suggestion"].is_string());
    let code = error["error_code"].as_str().expect("a code").to_owned();
    let text = result["content"][0]["text"].as_str().expect("a text");
    assert!(text.starts_with(&code), "{text}");
    code
}

/// Proves G-10.
#[tokio::test]
async fn the_specified_example_works() {
    let folder = Folder::new();
    folder.file("src/main.rs");
    folder.file("src/a/b/c/too-deep.rs");
    fs::set_permissions(folder.path().join("src/main.rs"), fs::Permissions::from_mode(0o644)).expect("a mode");
    let result = list(folder.path(), json!({"path": "./src", "recursive": true, "max_depth": 3})).await;
    let data = &result["structuredContent"];
    assert_eq!(result["isError"], false);
    assert_eq!(data["path"], "./src");
    let paths: Vec<&Value> = data["entries"].as_array().expect("a list").iter().map(|entry| &entry["path"]).collect();
    assert_eq!(paths, ["./src/a", "./src/a/b", "./src/a/b/c", "./src/main.rs"]);
    let main = &data["entries"][3];
    assert_eq!((&main["type"], &main["size"], &main["permissions"]), (&json!("file"), &json!(5), &json!("rw-r--r--")));
    let modified = main["modified"].as_str().expect("a time");
    assert!(modified.len() == 20 && modified.ends_with('Z') && modified.starts_with("20"), "{modified}");
    assert_eq!(data["metadata"]["total_entries"], 4);
    assert_eq!(data["metadata"]["truncated"], false);
    assert!(data["metadata"]["execution_time"].is_f64());
}

/// Proves G-8.
#[tokio::test]
async fn the_text_is_the_same_json() {
    let folder = Folder::new();
    folder.file("x");
    let result = list(folder.path(), json!({"path": "."})).await;
    let text = result["content"][0]["text"].as_str().expect("a text");
    let parsed: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(parsed, result["structuredContent"]);
    let mut old = Dialogue::session(folder.path(), "2025-03-26").await;
    let answer = old.call("directory_list", json!({"path": "."})).await;
    assert!(answer["result"].get("structuredContent").is_none(), "not before 2025-06-18");
    assert!(answer["result"]["content"][0]["text"].as_str().expect("a text").contains("\"entries\""));
}

async fn directory_tool(root: &Path) -> Value {
    let mut peer = Dialogue::start(root);
    let mut answer = peer.ask_stateless("tools/list", json!({})).await;
    answer["result"]["tools"][1].take()
}

/// Proves GO-1.
#[tokio::test]
async fn metadata_and_the_alias() {
    let folder = Folder::new();
    folder.file("x");
    let tool = directory_tool(folder.path()).await;
    assert_eq!(tool["name"], "directory_list");
    let about = json!({
        "version": "1.0.0",
        "categories": ["filesystem", "utility", "navigation"],
        "trust_level": "verified",
        "aliases": ["ls"],
    });
    assert_eq!(tool["_meta"]["signalbox/tool"], about);
    assert_eq!(tool["annotations"]["readOnlyHint"], true);
    assert_eq!(tool["annotations"]["destructiveHint"], false);
    let mut peer = Dialogue::start(folder.path());
    let answer = peer.call_stateless("ls", json!({"path": "."})).await;
    assert_eq!(answer["result"]["structuredContent"]["entries"][0]["name"], "x");
}

/// Proves GO-2.
#[tokio::test]
async fn the_input_schema_has_the_specified_limits() {
    let folder = Folder::new();
    let schema = directory_tool(folder.path()).await["inputSchema"].take();
    assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
    assert_eq!(schema["required"], json!(["path"]));
    for pointer in ["", "/properties/filter", "/properties/filter/properties/size_range", "/properties/sort"] {
        let object = schema.pointer(pointer).expect("an object");
        assert_eq!(object["additionalProperties"], false, "{pointer}");
    }
    for (pointer, expected) in [
        ("/path/pattern", json!("^[a-zA-Z0-9/_.-]+$")),
        ("/path/maxLength", json!(1024)),
        ("/recursive/default", json!(false)),
        ("/max_depth/minimum", json!(1)),
        ("/max_depth/maximum", json!(10)),
        ("/max_depth/default", json!(3)),
        ("/include_hidden/default", json!(false)),
        ("/filter/properties/pattern/maxLength", json!(256)),
        (
            "/filter/properties/file_types/items/enum",
            json!(["file", "directory", "symlink", "socket", "pipe", "device"]),
        ),
        ("/sort/properties/by/enum", json!(["name", "size", "modified", "type"])),
        ("/sort/properties/by/default", json!("name")),
        ("/sort/properties/order/enum", json!(["asc", "desc"])),
        ("/sort/properties/order/default", json!("asc")),
        ("/limit/minimum", json!(1)),
        ("/limit/maximum", json!(1000)),
        ("/limit/default", json!(100)),
    ] {
        assert_eq!(schema["properties"].pointer(pointer), Some(&expected), "{pointer}");
    }
}

/// Proves GO-2.
#[tokio::test]
async fn filter_sort_and_limit() {
    let folder = Folder::new();
    for file in ["b.rs", "a.rs", "c.txt", ".hidden", "sub/d.rs"] {
        folder.file(file);
    }
    fs::write(folder.path().join("c.txt"), "x".repeat(100_000)).expect("a file");
    let root = folder.path();
    let check = |arguments: Value| async move { names(root, arguments).await.join(" ") };
    assert_eq!(check(json!({"path": "."})).await, "a.rs b.rs c.txt sub");
    assert_eq!(check(json!({"path": ".", "include_hidden": true})).await, ".hidden a.rs b.rs c.txt sub");
    assert_eq!(check(json!({"path": ".", "sort": {"order": "desc"}})).await, "sub c.txt b.rs a.rs");
    assert_eq!(check(json!({"path": ".", "sort": {"by": "type"}})).await, "sub a.rs b.rs c.txt");
    assert_eq!(check(json!({"path": ".", "sort": {"by": "size", "order": "desc"}, "limit": 1})).await, "c.txt");
    assert_eq!(check(json!({"path": ".", "filter": {"file_types": ["directory"]}})).await, "sub");
    assert_eq!(check(json!({"path": ".", "filter": {"file_types": []}})).await, "a.rs b.rs c.txt sub");
    assert_eq!(check(json!({"path": ".", "filter": {"size_range": {"min": 100_000}}})).await, "c.txt");
    assert_eq!(check(json!({"path": ".", "filter": {"size_range": {"min": 5, "max": 5}}})).await, "a.rs b.rs");
    let recursive = json!({"path": ".", "recursive": true, "filter": {"pattern": "*.rs"}});
    assert_eq!(check(recursive).await, "a.rs b.rs d.rs");
}

/// Proves GO-2.
#[tokio::test]
async fn entries_are_sorted_by_time() {
    let folder = Folder::new();
    for (file, seconds) in [("new", 2_000_000_000), ("old", 1_000_000_000)] {
        folder.file(file);
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        let handle = fs::File::options().write(true).open(folder.path().join(file)).expect("a file");
        handle.set_modified(time).expect("a time");
    }
    let result = list(folder.path(), json!({"path": ".", "sort": {"by": "modified"}})).await;
    let entries = &result["structuredContent"]["entries"];
    assert_eq!(entries[0]["modified"], "2001-09-09T01:46:40Z");
    assert_eq!(entries[1]["modified"], "2033-05-18T03:33:20Z");
}

/// Proves GO-3.
#[tokio::test]
async fn more_about_entries_and_counts() {
    let folder = Folder::new();
    for n in 0..5 {
        folder.file(&format!("f{n}"));
    }
    symlink("f0", folder.path().join("link")).expect("a link");
    let arguments = json!({"path": ".", "filter": {"pattern": "f*"}, "limit": 2});
    let result = list(folder.path(), arguments).await;
    let metadata = &result["structuredContent"]["metadata"];
    assert_eq!(metadata["total_entries"], 6);
    assert_eq!(metadata["filtered_entries"], 5);
    assert_eq!(metadata["truncated"], true);
    let all = list(folder.path(), json!({"path": "."})).await;
    let tool = directory_tool(folder.path()).await;
    let schema = &tool["outputSchema"]["properties"]["entries"]["items"];
    for entry in all["structuredContent"]["entries"].as_array().expect("a list") {
        for key in schema["required"].as_array().expect("a list") {
            assert!(entry.get(key.as_str().expect("a name")).is_some(), "{key} in {entry}");
        }
        for key in entry.as_object().expect("an object").keys() {
            assert!(schema["properties"].get(key).is_some(), "{key}");
        }
        assert_eq!(entry.get("symlink_target").is_some(), entry["type"] == "symlink");
    }
    assert_eq!(all["structuredContent"]["entries"][5]["symlink_target"], "f0");
    assert!(all["structuredContent"]["entries"][0]["owner"].is_string());
}

/// Proves GO-4 and GO-7.
#[tokio::test]
async fn each_refusal_has_its_code() {
    let folder = Folder::new();
    folder.file("src/x");
    folder.file("home/.ssh/id");
    symlink("src", folder.path().join("inside")).expect("a link");
    symlink("/usr", folder.path().join("outside")).expect("a link");
    for (path, expected) in [
        ("/etc/passwd", "path_not_allowed"),
        ("outside", "path_not_allowed"),
        (&"a/".repeat(513), "PathTooLong"),
        ("../x", "DangerousPathSequence"),
        ("%2e%2e/x", "DangerousPathSequence"),
        ("..\\x", "DangerousPathSequence"),
        ("src\0", "DangerousPathSequence"),
        ("~/.ssh", "DangerousPathSequence"),
        ("home/.ssh", "SensitivePathAccess"),
        ("inside", "SymlinksNotAllowed"),
        ("nothing", "PathNotFound"),
        ("src/x", "NotADirectory"),
        ("a b", "InvalidArguments"),
        ("ｓrc", "InvalidArguments"),
    ] {
        assert_eq!(code(folder.path(), json!({"path": path})).await, expected, "{path:?}");
    }
    assert_eq!(code(Path::new("/"), json!({"path": "/etc"})).await, "PathBlocked");
    assert_eq!(code(folder.path(), json!({"path": ".", "max_depth": 11})).await, "DepthLimitExceeded");
    let result = list(folder.path(), json!({"path": "/etc/passwd"})).await;
    assert_eq!(result["_meta"]["signalbox/error"]["details"]["requested_path"], "/etc/passwd");
}

/// Proves GO-7.
#[tokio::test]
async fn refusals_are_results_in_every_revision() {
    let folder = Folder::new();
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut peer = Dialogue::session(folder.path(), revision).await;
        let answer = peer.call("directory_list", json!({"path": "/etc"})).await;
        assert_eq!(answer["result"]["_meta"]["signalbox/error"]["error_code"], "path_not_allowed");
    }
}

/// Proves GO-4.
#[tokio::test]
async fn absolute_paths_inside_the_root_work_and_keep_their_form() {
    let folder = Folder::new();
    folder.file("src/x");
    let path = folder.path().join("src").display().to_string();
    let result = list(folder.path(), json!({"path": path})).await;
    let shown = &result["structuredContent"]["entries"][0]["path"];
    assert_eq!(*shown, format!("{path}/x"));
}

/// Proves GO-5.
#[tokio::test]
async fn the_eleventh_call_at_once_is_limited_and_other_tools_are_not() {
    let folder = Folder::new();
    let mut peer = Dialogue::session(folder.path(), "2025-11-25").await;
    let mut codes = Vec::new();
    for _ in 0..14 {
        let answer = peer.call("ls", json!({"path": "."})).await;
        codes.push(answer["result"]["_meta"]["signalbox/error"]["error_code"].clone());
    }
    assert!(codes[..10].iter().all(Value::is_null), "{codes:?}");
    assert!(codes.contains(&json!("RateLimitExceeded")), "{codes:?}");
    for _ in 0..30 {
        let echo = peer.call("echo", json!({"text": "x"})).await;
        assert_eq!(echo["result"]["isError"], false);
    }
}

/// Proves GO-5.
#[tokio::test]
async fn bad_calls_are_not_free() {
    let folder = Folder::new();
    let mut peer = Dialogue::session(folder.path(), "2025-11-25").await;
    for _ in 0..10 {
        peer.call("ls", json!({"path": "../.."})).await;
    }
    let mut limited = false;
    for _ in 0..4 {
        let answer = peer.call("ls", json!({"path": "."})).await;
        limited |= answer["result"]["_meta"]["signalbox/error"]["error_code"] == "RateLimitExceeded";
    }
    assert!(limited);
}

/// Proves GO-6.
#[tokio::test]
async fn the_risk_is_part_of_the_result() {
    let folder = Folder::new();
    for (arguments, risk) in [
        (json!({"path": "."}), "Low"),
        (json!({"path": ".", "recursive": true, "max_depth": 5}), "Low"),
        (json!({"path": ".", "recursive": true, "max_depth": 6}), "Medium"),
        (json!({"path": ".", "recursive": true, "max_depth": 6.0}), "Medium"),
        (json!({"path": ".", "max_depth": 6}), "Low"),
        (json!({"path": "/etc/passwd"}), "High"),
        (json!({"path": "/root"}), "High"),
        (json!({"path": "../../../../../../../../etc"}), "High"),
    ] {
        let result = list(folder.path(), arguments.clone()).await;
        assert_eq!(result["_meta"]["signalbox/risk"], risk, "{arguments}");
    }
}

#[tokio::test]
async fn folders_that_could_not_be_entered_are_counted() {
    let folder = Folder::new();
    folder.file("home/.gnupg/key");
    let arguments = json!({"path": ".", "recursive": true, "include_hidden": true});
    let result = list(folder.path(), arguments).await;
    assert_eq!(result["_meta"]["signalbox/skipped_directories"], 1);
    assert_eq!(result["structuredContent"]["metadata"]["total_entries"], 2);
}

#[tokio::test]
async fn names_that_are_not_text_are_shown_as_well_as_can_be() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new();
    // Some file systems refuse such names; then there is nothing to show.
    if fs::write(folder.path().join(OsStr::from_bytes(b"bad\xffname")), "").is_ok() {
        assert_eq!(names(folder.path(), json!({"path": "."})).await, ["bad\u{fffd}name"]);
    }
}
