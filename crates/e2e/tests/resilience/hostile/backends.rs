//! Backends that misbehave: the call gets the right answer or a clear error in time, and nobody else notices.

use super::hostile_http::{self, TOOLS};
use super::raw::Raw;
use super::{fixture_config, memory, session, unharmed, works};
use serde_json::{Value, json};
use signalbox_testkit::gateway::GatewayProcess;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a call may take: the time-out of 2 s, and some for a busy machine.
const AT_MOST: Duration = Duration::from_secs(5);
/// What a call may cost beyond what is there before, in KiB; a 100-MB line must not be kept.
const GROWTH: u64 = 90 * 1024;

/// What a call of a misbehaving tool may lead to.
#[derive(Copy, Clone, PartialEq, Debug)]
enum Outcome {
    Right,
    /// An error with one of these reasons.
    Error(&'static [&'static str]),
    /// The backend's own error, passed on.
    Passed,
}

const LATE: Outcome = Outcome::Error(&["timed_out"]);
const GARBAGE: Outcome = Outcome::Error(&["backend_garbage"]);
const GARBAGE_OR_LATE: Outcome = Outcome::Error(&["backend_garbage", "timed_out"]);
const DIED: Outcome = Outcome::Error(&["backend_died"]);

fn web_outcome(name: &str) -> Outcome {
    match name {
        "web_fine" | "web_twice" | "web_foreign_progress" => Outcome::Right,
        "web_error_without_id" => Outcome::Passed,
        "web_comments" | "web_slow_json" => LATE,
        "web_endless_event" | "web_endless_json" | "web_huge_length" => GARBAGE_OR_LATE,
        "web_closes" => DIED,
        _ => GARBAGE,
    }
}

/// A server in `sh`, told by the name of the called tool how to misbehave.
const SCRIPT: &str = r#"
right() { printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"right"}]}}\n' "$1"; }
wrong() { printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"WRONG"}]}}\n' "$1"; }
tool() { printf '{"name":"%s","inputSchema":{"type":"object"}}' "$1"; }
echo 'hello, this is no JSON'
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}\n' "$id" ;;
    *'"tools/list"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[' "$id"
      first=1
      for name in $TOOL_NAMES; do [ $first = 1 ] || printf ,; first=0; tool "$name"; done
      printf ']}}\n' ;;
    *'"sh_twice"'*) right "$id"; wrong "$id"; wrong "$id" ;;
    *'"sh_other_id"'*) wrong $((id + 1)); wrong $((id + 1000)); wrong $((id - 1)); wrong 0; wrong -1 ;;
    *'"sh_text_id"'*) wrong "\"$id\"" ;;
    *'"sh_float_id"'*) wrong "$id.5"; wrong "1e999"; wrong "[$id]"; wrong "{}"; wrong true ;;
    *'"sh_null_id"'*) wrong null ;;
    *'"sh_error_without_id"'*) echo '{"jsonrpc":"2.0","error":{"code":-1,"message":"WRONG"}}' ;;
    *'"sh_garbage"'*) echo 'garbage'; echo '{'; echo '[]'; echo '[1,2]'; printf '\000\377\376\n'; echo 'null'; echo '{"id":'; right "$id" ;;
    *'"sh_double_key"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"right","text":"WRONG"}]}}\n' "$id" ;;
    *'"sh_double_id"'*) printf '{"jsonrpc":"2.0","id":%s,"id":%s,"result":{"content":[{"type":"text","text":"WRONG"}]}}\n' "$id" "$id" ;;
    *'"sh_long_line"'*) head -c 40000000 /dev/zero | tr '\0' x; echo; right "$id" ;;
    *'"sh_long_answer"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' "$id"; head -c 20000000 /dev/zero | tr '\0' x; echo '"}]}}' ;;
    *'"sh_long_end"'*) printf '{"result":{"content":[{"type":"text","text":"'; head -c 20000000 /dev/zero | tr '\0' x; printf '"}]},"jsonrpc":"2.0","id":%s}\n' "$id" ;;
    *'"sh_deep"'*) printf '{"jsonrpc":"2.0","id":%s,"result":' "$id"; head -c 100000 /dev/zero | tr '\0' '['; echo ;;
    *'"sh_questions"'*) i=0; while [ $i -lt 400 ]; do i=$((i+1)); printf '{"jsonrpc":"2.0","id":%s,"method":"sampling/createMessage","params":{}}\n' $i; done; right "$id" ;;
    *'"sh_notes"'*) i=0; while [ $i -lt 2000 ]; do i=$((i+1)); printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}\n' $i; done; right "$id" ;;
    *'"sh_silent"'*) ;;
    *'"sh_fine"'*) right "$id" ;;
    *'"id"'*'"method"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
  esac
done
"#;

const SH_TOOLS: &[(&str, Outcome)] = &[
    ("sh_fine", Outcome::Right),
    ("sh_twice", Outcome::Right),
    ("sh_other_id", LATE),
    ("sh_text_id", LATE),
    ("sh_float_id", LATE),
    ("sh_null_id", LATE),
    ("sh_error_without_id", LATE),
    ("sh_garbage", Outcome::Right),
    // It fails at once, not after the time-out.
    ("sh_double_key", Outcome::Error(&["backend_garbage"])),
    ("sh_double_id", GARBAGE_OR_LATE),
    ("sh_long_line", Outcome::Right),
    // So does an answer that is too long, whether its id stands before or behind the result.
    ("sh_long_answer", GARBAGE),
    ("sh_long_end", GARBAGE),
    ("sh_deep", GARBAGE_OR_LATE),
    ("sh_questions", Outcome::Right),
    ("sh_notes", Outcome::Right),
    ("sh_silent", LATE),
];

/// Calls a tool; what is wrong with the outcome.
async fn call(client: &mut Raw, lines: &str, name: &str, expected: Outcome) -> Option<String> {
    let started = Instant::now();
    let call = json!({"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": {"name": name, "arguments": {}}});
    let reply = match client.post(lines, call.to_string().as_bytes()).await {
        Ok(reply) => reply,
        Err(error) => return Some(format!("{name}: {error:#}")),
    };
    let took = started.elapsed();
    let text = String::from_utf8_lossy(&reply.body[..reply.body.len().min(1000)]).into_owned();
    let message = reply.messages().ok().and_then(|mut messages| messages.pop()).unwrap_or(Value::Null);
    let reason = message["error"]["data"]["reason"].as_str().unwrap_or_default();
    let outcome_fits = match expected {
        Outcome::Right => message["result"]["content"][0]["text"] == "right",
        Outcome::Error(reasons) => reasons.contains(&reason),
        Outcome::Passed => message["error"]["code"] == -1,
    };
    let fits = outcome_fits && message["id"] == name && took < AT_MOST && !text.contains("WRONG");
    (!fits).then(|| format!("{name}: expected {expected:?}, after {took:?} came {} {text}", reply.status))
}

/// Calls every tool, each twice, while somebody else uses another backend.
async fn call_all(gateway: &GatewayProcess, backend: &str, tools: &[(&str, Outcome)]) {
    let mut client = Raw::connect(gateway.address()).await.unwrap();
    let lines = session(&mut client).await;
    let mut other = Raw::connect(gateway.address()).await.unwrap();
    let other_lines = session(&mut other).await;
    let before = memory(gateway.process.pid().unwrap());
    let (stop, mut stopped) = tokio::sync::watch::channel(false);
    let bystander = tokio::spawn(async move {
        let mut worst = Duration::ZERO;
        while !*stopped.borrow_and_update() {
            let started = Instant::now();
            works(&mut other, &other_lines).await;
            worst = worst.max(started.elapsed());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        worst
    });
    let mut wrong = Vec::new();
    for (name, expected) in tools {
        wrong.extend(call(&mut client, &lines, name, *expected).await);
        let fine = format!("{backend}_fine");
        wrong
            .extend(call(&mut client, &lines, &fine, Outcome::Right).await.map(|what| format!("after {name}: {what}")));
    }
    stop.send_replace(true);
    let worst = bystander.await.unwrap();
    let after = memory(gateway.process.pid().unwrap());
    println!("{backend}: the other backend took at most {worst:?}; memory {before} KiB before, {after} KiB after");
    assert!(wrong.is_empty(), "\n{}\n{}", wrong.join("\n"), gateway.process.error_lines().join("\n"));
    assert!(worst < Duration::from_secs(2), "{worst:?}");
    assert!(after < before + GROWTH, "{before} KiB before, {after} KiB after");
    unharmed(gateway);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_http_backend_hurts_only_its_own_calls() {
    let hostile = hostile_http::start().await;
    let web = format!("[backends.web]\nurl = \"http://{}/mcp\"\nera = \"old\"\ntimeout = 2\n", hostile.address);
    // The guard makes the tables of its patterns at the first texts that need them. Hostile answers do not cause that
    // growth.
    let gateway = GatewayProcess::serve(&format!("guard.level = 'off'\n{}{web}", fixture_config())).await.unwrap();
    gateway.ready().await.unwrap();
    let tools: Vec<_> = TOOLS.iter().map(|name| (*name, web_outcome(name))).collect();
    call_all(&gateway, "web", &tools).await;
    for _ in 0..50 {
        if hostile.writing.load(Ordering::SeqCst) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{} endless answers are still being read", hostile.writing.load(Ordering::SeqCst));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_child_hurts_only_its_own_calls() {
    let names: Vec<&str> = SH_TOOLS.iter().map(|(name, _)| *name).collect();
    let child = format!(
        "[backends.sh]\ncommand = \"sh\"\nargs = [\"-c\", {}]\nera = \"old\"\ntimeout = 2\n[backends.sh.env]\nTOOL_NAMES = {}\n",
        json!(SCRIPT.replace("${", "$${")),
        json!(names.join(" "))
    );
    let gateway = GatewayProcess::serve(&format!("{}{child}", fixture_config())).await.unwrap();
    gateway.ready().await.unwrap();
    call_all(&gateway, "sh", SH_TOOLS).await;
}
