//! Tools that break the protocol or use rare parts of it: answers without a request, doubled and late ones, questions
//! that the server takes back, batches, pings.

use serde_json::{Value, json};

use super::call::{Out, ServedCall};
use super::catalog::tool;
use super::fault::RpcFault;
use super::methods::complete;
use super::question::ServerQuestion;
use super::talk::TalkKind;
use super::tools::text;
use crate::revision::Revision;

/// The tool that is cancelled and answers all the same.
const LATE: &str = "late";
/// Each tool, and what it says of itself.
const ODD: [(&str, &str); 7] = [
    ("orphan", "Answers a request that nobody made, then its own."),
    ("twice", "Answers twice."),
    (LATE, "Answers when it is cancelled."),
    ("rumour", "Sends a notification that no revision has."),
    ("withdraw", "Asks the model and takes the question back."),
    ("ping_client", "Asks whether the client is there."),
    ("batch", "Sends two log messages as one batch."),
];

/// The odd tools of a revision.
pub fn tools(revision: Revision) -> Vec<Value> {
    let fits = |name: &str| match name {
        "withdraw" | "ping_client" => !revision.modern(),
        "batch" => revision == Revision::R2,
        _ => true,
    };
    ODD.iter().filter(|(name, _)| fits(name)).map(|(name, says)| tool(name, says, &json!({}))).collect()
}

/// Whether this is an odd tool.
pub fn has(name: &str) -> bool {
    ODD.iter().any(|(odd, _)| *odd == name)
}

/// Whether the answer to a message has to be a stream of events, since more than one message may come.
pub fn streams(message: &Value) -> bool {
    message["method"] == "tools/call" && message["params"]["name"].as_str().is_some_and(has)
}

/// Whether a call goes on although it is cancelled. A client of the new era that leaves over HTTP cannot be answered.
pub fn stays(call: &ServedCall) -> bool {
    call.method == "tools/call" && call.params["name"] == LATE && call.talk.kind != TalkKind::Stateless
}

/// Calls an odd tool.
///
/// # Errors
/// When the client does not answer as it has to.
pub async fn run(call: &ServedCall, name: &str) -> Result<Value, RpcFault> {
    let send = async |message: Value| {
        // A client that left reads nothing more.
        let _ = call.out.send(Out::note(message)).await;
    };
    let answer = complete(text(name), call.revision());
    match name {
        "orphan" => send(json!({"jsonrpc": "2.0", "id": "nobody asked", "result": answer})).await,
        "twice" => send(json!({"jsonrpc": "2.0", "id": call.id, "result": answer})).await,
        LATE => {
            call.talk.shared.event("started", LATE, call.tag());
            call.cancel.notified().await;
            call.talk.shared.event("cancelled", LATE, call.tag());
        }
        "rumour" => call.notify("notifications/rumour", json!({"tag": call.tag()})).await,
        "withdraw" => withdraw(call).await,
        "ping_client" => {
            let answer = call.ask(ServerQuestion::Ping, ServerQuestion::Ping.params(call.revision())).await;
            answer.map_err(|error| RpcFault::new(-32603, format!("{error:#}")))?;
        }
        _ => {
            let note = |number: u8| {
                let params =
                    json!({"level": "error", "logger": "batch", "data": {"number": number, "tag": call.tag()}});
                json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
            };
            send(json!([note(1), note(2)])).await;
        }
    }
    Ok(answer)
}

/// Asks, and does not want to know any more.
async fn withdraw(call: &ServedCall) {
    if !call.capabilities()[ServerQuestion::Sample.capability()].is_object() {
        return;
    }
    let (id, answer) = call.talk.expect(ServerQuestion::Sample);
    let (method, params) = (ServerQuestion::Sample.method(), ServerQuestion::Sample.params(call.revision()));
    let question = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    // A client that left reads nothing more.
    let _ = call.out.send(Out::note(question)).await;
    call.notify("notifications/cancelled", json!({"requestId": id, "reason": "not needed"})).await;
    drop(answer);
}
