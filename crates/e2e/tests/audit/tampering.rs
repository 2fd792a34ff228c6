//! What `audit verify` says of a log that was cut, added to or copied.

use crate::postgres_server::PostgresServer;
use crate::{config, database_url, greet, log_of, search, session};
use serde_json::Value;
use signalbox_audit::{AuditEvent, ChainPlace, EventType, RiskLevel};
use signalbox_seal::unhex;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::process::built;
use std::path::Path;

/// Exit code and words of `audit verify`.
pub fn verified(folder: &Path, args: &[&str]) -> (Option<i32>, String) {
    let mut command = std::process::Command::new(built("signalbox").unwrap());
    command.args(["audit", "verify"]).args(args).arg("-c").arg(folder.join("signalbox.toml"));
    let output = command.arg("--data-dir").arg(folder.join("data")).current_dir(folder).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap())
}

/// Records behind the last signature were cut off unseen, though the gateway remembers that its log had them.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_without_its_last_unsigned_records_is_not_whole() {
    let gateway = GatewayProcess::serve(&format!("{}[seal]\nhead_every = 5\n", config("", ""))).await.unwrap();
    let client = session(&gateway).await;
    for id in 0..20 {
        greet(&client, id, "Ada").await;
    }
    search(&gateway, &["--type", "tool_invocation"], 40).await;
    let folder = gateway.config_file().parent().unwrap().to_owned();
    let log = log_of(&folder);
    let text = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let signed = lines.iter().rposition(|line| line.contains("chain_head")).expect("nothing is signed");
    assert_eq!(verified(&folder, &[]).0, Some(0));
    for kept in signed + 1..lines.len() {
        std::fs::write(&log, lines[..kept].join("\n") + "\n").unwrap();
        let (code, said) = verified(&folder, &[]);
        assert_eq!(code, Some(1), "{kept} of {} lines: {said}", lines.len());
    }
}

/// A person who can write to the log and the data folder cuts both at an earlier head. The verdict cannot tell, so the
/// command says what it does not notice.
#[tokio::test(flavor = "multi_thread")]
async fn verification_says_which_removals_it_does_not_notice() {
    let gateway = GatewayProcess::serve(&format!("{}[seal]\nhead_every = 5\n", config("", ""))).await.unwrap();
    let client = session(&gateway).await;
    for id in 0..20 {
        greet(&client, id, "Ada").await;
    }
    search(&gateway, &["--type", "tool_invocation"], 40).await;
    let folder = gateway.terminate().await.unwrap();
    let log = log_of(folder.path());
    let text = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let cut = 1 + lines.iter().position(|one| one["event_type"] == "chain_head").expect("nothing is signed");
    assert!(cut < lines.len(), "there is a later head");
    let kept: String = text.lines().take(cut).map(|line| format!("{line}\n")).collect();
    std::fs::write(&log, &kept).unwrap();
    assert_eq!(verified(folder.path(), &[]).0, Some(1), "the data folder tells of a cut in the log alone");
    let chain = folder.path().join("data/audit/journal").join(lines[0]["chain"].as_str().unwrap());
    for entry in std::fs::read_dir(&chain).unwrap() {
        let path = entry.unwrap().path();
        match path.extension().and_then(|kind| kind.to_str()) {
            Some("jsonl") => std::fs::write(&path, &kept).unwrap(),
            Some("cursor") => std::fs::write(&path, cut.to_string()).unwrap(),
            _ => {}
        }
    }
    std::fs::write(chain.join("head.json"), lines[cut - 1]["details"].to_string()).unwrap();
    let tells = |said: &str| {
        assert!(said.contains("not noticed: ") && said.contains("back to any signed head"), "{said}");
        assert!(said.contains("after 5 records or 10 s") && said.contains("whole chain"), "{said}");
    };
    let (code, said) = verified(folder.path(), &[]);
    assert_eq!(code, Some(0), "{said}");
    tells(&said);
    let json = |args: &[&str]| -> Value { serde_json::from_str(&verified(folder.path(), args).1).unwrap() };
    let told = json(&["--json"]);
    assert_eq!(
        (&told["not_noticed"]["head_every"], &told["not_noticed"]["head_interval_ms"]),
        (&5.into(), &10_000.into())
    );
    assert_eq!(told["not_noticed"]["behind_last_head"], told["unsigned"], "{told}");
    let copy = log.to_str().unwrap();
    let (_, said) = verified(folder.path(), &["--file", copy]);
    assert!(said.contains("not noticed: records behind the last signature of a chain"), "{said}");
    let told = json(&["--file", copy, "--json"]);
    assert!(told["not_noticed"]["text"].as_str().unwrap().contains("of which the copy has nothing"), "{told}");
    // A chain that is gone with its journal leaves nothing to compare with.
    std::fs::remove_dir_all(&chain).unwrap();
    std::fs::write(&log, "").unwrap();
    let (code, said) = verified(folder.path(), &[]);
    assert_eq!(code, Some(0), "{said}");
    tells(&said);
}

/// A log that was cut at its start or its end, or to which something was added, is not whole; a copy without signatures
/// is unproved.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_was_cut_or_added_to_is_not_whole() {
    let gateway = GatewayProcess::serve(&config("", "")).await.unwrap();
    let client = session(&gateway).await;
    for id in 0..20 {
        greet(&client, id, "Ada").await;
    }
    search(&gateway, &["--type", "tool_invocation"], 40).await;
    let (live, said) = verified(gateway.config_file().parent().unwrap(), &[]);
    assert_eq!(live, Some(0), "records that are not signed yet are in the journal: {said}");
    let folder = gateway.terminate().await.unwrap();
    let log = log_of(folder.path());
    let text = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let verdict = |lines: &[&str], args: &[&str]| {
        std::fs::write(&log, lines.join("\n") + "\n").unwrap();
        verified(folder.path(), args).0
    };
    assert_eq!(verdict(&lines, &[]), Some(0));
    assert_eq!(verdict(&lines[lines.len() - 5..], &[]), Some(1), "only the last five");
    assert_eq!(verdict(&lines[10..], &[]), Some(1), "without the first ten");
    assert_eq!(verdict(&lines[..lines.len() - 5], &[]), Some(1), "without the last five");
    assert_eq!(verdict(&[], &[]), Some(1), "nothing is left");
    // A chain that nobody signed, and records that follow the last one.
    let first: Value = serde_json::from_str(lines[0]).unwrap();
    let own = first["chain"].as_str().unwrap();
    let last: Value = serde_json::from_str(lines[lines.len() - 1]).unwrap();
    let event = |at: u64| AuditEvent::own(at, EventType::Request, "{}", RiskLevel::Low);
    let appended = |mut place: ChainPlace| {
        let mut text = String::new();
        (1..4).for_each(|at| place.append(&event(at), &mut text));
        text
    };
    let invented = appended(ChainPlace::start("0123456789abcdef"));
    assert_eq!(verdict(&[&lines[..5], &invented.lines().collect::<Vec<_>>(), &lines[5..]].concat(), &[]), Some(1));
    let hash: Vec<u8> = unhex(last["hash"].as_str().unwrap()).unwrap();
    let end = ChainPlace { chain: own.to_owned(), seq: last["seq"].as_u64().unwrap(), hash: hash.try_into().unwrap() };
    let more = appended(end);
    assert_eq!(
        verdict(&[&lines[..], &more.lines().collect::<Vec<_>>()].concat(), &[]),
        Some(1),
        "more than was written"
    );
    // A copy, whole and rehashed without its heads.
    let copy = folder.path().join("copy.log");
    std::fs::write(&copy, &text).unwrap();
    let of_copy = || verified(folder.path(), &["--file", copy.to_str().unwrap()]);
    assert_eq!(of_copy().0, Some(0), "{}", of_copy().1);
    std::fs::write(&copy, appended(ChainPlace::start(own))).unwrap();
    let (code, said) = of_copy();
    assert!(code == Some(4) && said.contains("unproved:") && !said.contains("whole"), "{said}");
    std::fs::write(&copy, lines[10..].join("\n") + "\n").unwrap();
    assert_eq!(of_copy().0, Some(1), "a copy without its start");
    assert_eq!(verdict(&lines, &[]), Some(0));
    std::fs::remove_dir_all(folder.path().join("data/audit/journal")).unwrap();
    assert_ne!(verdict(&lines[..lines.len() - 1], &[]), Some(0));
    assert_eq!(verdict(&lines, &[]), Some(4), "nothing tells how far the chain went");
}

/// What a rule logs is in the audit log without secrets.
#[tokio::test(flavor = "multi_thread")]
async fn decisions_in_the_log_are_redacted() {
    const SECRET: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    let rule =
        "[[rules]]\nid = \"tells\"\nwhen = { tool = \"greet\" }\nthen = [{ log = \"{{/params/arguments/name}}\" }]\n";
    let gateway = GatewayProcess::serve(&format!("{}{rule}", config("", ""))).await.unwrap();
    let client = session(&gateway).await;
    greet(&client, 1, SECRET).await;
    search(&gateway, &["--type", "tool_invocation"], 2).await;
    let folder = gateway.terminate().await.unwrap();
    let text = std::fs::read_to_string(log_of(folder.path())).unwrap();
    assert!(text.contains("\"rule\":\"tells\"") && !text.contains(SECRET), "{text}");
}

/// The gateway deletes no young record of a database whose column `at` was set back, and names the rows.
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_were_dated_back_stay() {
    let Some(server) = tokio::task::block_in_place(PostgresServer::start) else { return };
    let address = tokio::task::block_in_place(|| server.database());
    let text = config("", &format!("database_url = \"{}\"\n", database_url(&address)));
    let sql = |sql: &str| -> i64 {
        tokio::task::block_in_place(|| {
            let mut client = postgres::Client::connect(&address, postgres::NoTls).unwrap();
            client.query_one(sql, &[]).unwrap().get(0)
        })
    };
    let mut folder = tempfile::tempdir().unwrap();
    for round in 0..2 {
        let gateway = GatewayProcess::serve_in(folder, &text).await.unwrap();
        let client = session(&gateway).await;
        for id in 0..5 {
            greet(&client, id, "Ada").await;
        }
        search(&gateway, &["--database", "--type", "tool_invocation"], 10 * (round + 1)).await;
        folder = gateway.terminate().await.unwrap();
        let (code, said) = verified(folder.path(), &["--database"]);
        match round {
            0 => {
                assert_eq!(code, Some(0), "{said}");
                let changed = "WITH changed AS (UPDATE signalbox.audit_record SET at = at - 200 * 86400000::bigint RETURNING 1) \
                    SELECT count(*) FROM changed";
                assert!(sql(changed) >= 10);
            }
            _ => assert!(
                code == Some(1) && said.contains("the column `at` of the row of record 1 says something else"),
                "{said}"
            ),
        }
    }
    assert_eq!(sql("SELECT count(*) FROM signalbox.audit_record WHERE event_type LIKE 'pruned%'"), 0);
    assert_eq!(sql("SELECT min(seq) FROM signalbox.audit_record"), 1);
}
