//! What `audit verify` says of a log that went to another file, and back.

use crate::tampering::verified;
use crate::{config, greet, search, session};
use serde_json::Value;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::scene::{eventually, signalbox};
use std::path::Path;

fn log_to(name: &str) -> String {
    config("spool_max = 65536", &format!("file_path = \"{name}\"\n"))
}

/// A gateway that writes to this file, and has served so many calls by the time it ends.
async fn serve(folder: tempfile::TempDir, path: &Path, calls: u64) -> tempfile::TempDir {
    let gateway = GatewayProcess::serve_in(folder, &log_to(path.to_str().unwrap())).await.unwrap();
    let client = session(&gateway).await;
    for id in 0..calls {
        greet(&client, id, "Ada").await;
    }
    search(&gateway, &["--type", "tool_invocation"], usize::try_from(2 * calls).unwrap()).await;
    gateway.terminate().await.unwrap()
}

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

fn write(path: &Path, lines: &[&String]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(path, text).unwrap();
}

fn value(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

/// The gap with which the second file begins does not stand for records of the first one.
#[tokio::test(flavor = "multi_thread")]
async fn a_gap_of_one_file_does_not_stand_for_records_of_another() {
    let (folder, logs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (one, two) = (logs.path().join("one.log"), logs.path().join("two.log"));
    let folder = serve(folder, &one, 60).await;
    let folder = serve(folder, &two, 10).await;
    let (of_one, of_two) = (lines(&one), lines(&two));
    let gap = value(&of_two[0]);
    assert_eq!(gap["kind"], "elsewhere_file", "{gap}");
    let (code, said) = verified(folder.path(), &[]);
    assert!(code == Some(6) && said.contains("records were written to another place"), "{code:?}: {said}");
    let file = |path: &Path| verified(folder.path(), &["--file", path.to_str().unwrap()]);
    let (before, said) = file(&one);
    assert_eq!(before, Some(0), "{said}");
    let kept = of_one.iter().filter(|line| value(line)["seq"].as_u64() > gap["to"].as_u64());
    write(&one, &of_two[..1].iter().chain(kept).collect::<Vec<_>>());
    let (code, said) = file(&one);
    assert!(code == Some(1) && said.contains("was signed for another sink"), "{code:?}: {said}");
    // A copy elsewhere is of the place that it is said to be of.
    let copy = logs.path().join("copy.log");
    write(&copy, &of_two.iter().collect::<Vec<_>>());
    let (code, said) = file(&copy);
    assert!(code == Some(4) && said.contains("`--of`"), "{code:?}: {said}");
    let of = |place: &Path| {
        let args = ["--file", copy.to_str().unwrap(), "--of", place.to_str().unwrap()];
        verified(folder.path(), &args)
    };
    let name = std::path::PathBuf::from(gap["sink"].as_str().unwrap());
    assert_eq!((of(&name).0, of(&one).0), (Some(6), Some(1)));
}

/// A log that goes to another file and back goes on behind what the first one has. Untouched it is as it says, with
/// gaps; without its first records it is not whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_goes_there_and_back_cannot_lose_what_it_has() {
    let (folder, logs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (one, two) = (logs.path().join("one.log"), logs.path().join("two.log"));
    let folder = serve(folder, &one, 60).await;
    let gateway = GatewayProcess::serve_in(folder, &log_to(two.to_str().unwrap())).await.unwrap();
    let client = session(&gateway).await;
    for id in 0..60 {
        greet(&client, id, "Ada").await;
    }
    search(&gateway, &["--type", "tool_invocation"], 120).await;
    std::fs::write(gateway.config_file(), log_to(one.to_str().unwrap())).unwrap();
    signalbox(&gateway.data_dir(), &["reload"]).await.unwrap();
    let reloaded = async || lines(&one).iter().any(|line| line.starts_with("{\"kind\"")).then_some(());
    for id in 60..70 {
        greet(&client, id, "Ada").await;
    }
    eventually("the first file is written to again", reloaded).await.unwrap();
    let folder = gateway.terminate().await.unwrap();
    let all = lines(&one);
    let at = all.iter().position(|line| line.starts_with("{\"kind\"")).unwrap();
    assert_eq!(value(&all[at])["kind"], "elsewhere_file");
    let (code, said) = verified(folder.path(), &[]);
    assert_eq!(code, Some(6), "{said}");
    write(&one, &all[at..].iter().collect::<Vec<_>>());
    let (code, said) = verified(folder.path(), &[]);
    assert_eq!(code, Some(1), "{said}");
}
