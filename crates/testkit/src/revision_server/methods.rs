//! What every method answers, but for tools.

use serde_json::{Value, json};

use super::call::{Out, ServedCall};
use super::fault::RpcFault;
use super::{catalog, tasks, tools};
use crate::revision::Revision;

/// How long lists of the new era hold.
const TTL_MS: u64 = 1000;
/// The key of what a message belongs to.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// The extension for tasks.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Answers a request.
///
/// # Errors
/// When it asks for what is not there.
pub async fn answer(call: &ServedCall) -> Result<Value, RpcFault> {
    let revision = call.revision();
    let params = &call.params;
    match call.method.as_str() {
        "initialize" => Ok(initialize(revision)),
        "server/discover" => Ok(discover()),
        "ping" => Ok(json!({})),
        "subscriptions/listen" => listen(call).await,
        "logging/setLevel" => {
            let level = tools::LEVELS.iter().position(|level| params["level"] == *level);
            call.talk.set_level(level.ok_or_else(|| RpcFault::params("no such level"))?);
            Ok(json!({}))
        }
        "resources/subscribe" | "resources/unsubscribe" => {
            let uri = catalog::known(params, revision)?;
            call.talk.follow(uri, call.method == "resources/subscribe");
            Ok(json!({}))
        }
        "tools/list" => Ok(cached(call.talk.shared.tools(), revision)),
        "prompts/list" => Ok(cached(catalog::prompts(revision, params)?, revision)),
        "resources/list" => Ok(cached(catalog::resources(revision), revision)),
        "resources/templates/list" => Ok(cached(catalog::templates(revision), revision)),
        "resources/read" => Ok(cached(catalog::read(params, revision)?, revision)),
        "prompts/get" => Ok(complete(catalog::prompt(params)?, revision)),
        "completion/complete" => Ok(complete(catalog::completion(params)?, revision)),
        "tools/call" => tools::call(call).await,
        method if method.starts_with("tasks/") => tasks::answer(call).await,
        method => Err(RpcFault::method(method)),
    }
}

/// A result as its revision has it: the new era says that it is complete, and whose it is.
pub fn complete(mut result: Value, revision: Revision) -> Value {
    if revision.modern() {
        result["resultType"] = json!("complete");
        result["_meta"]["io.modelcontextprotocol/serverInfo"] = info();
    }
    result
}

/// The same, for what may be kept for a while.
fn cached(mut result: Value, revision: Revision) -> Value {
    if revision.modern() {
        result["ttlMs"] = json!(TTL_MS);
        result["cacheScope"] = json!("private");
    }
    complete(result, revision)
}

fn info() -> Value {
    json!({"name": "revision-server", "version": "1"})
}

fn capabilities(revision: Revision) -> Value {
    let mut capabilities = json!({
        "tools": {"listChanged": true},
        "resources": {"subscribe": true},
        "prompts": {},
        "logging": {},
    });
    if revision >= Revision::R2 {
        capabilities["completions"] = json!({});
    }
    if revision == Revision::R4 {
        capabilities["tasks"] = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
        capabilities["extensions"] = json!({"io.modelcontextprotocol/ui": {}});
    }
    if revision.modern() {
        capabilities["extensions"] = json!({TASKS: {}});
    }
    capabilities
}

fn initialize(revision: Revision) -> Value {
    json!({
        "protocolVersion": revision.name(),
        "capabilities": capabilities(revision),
        "serverInfo": info(),
        "instructions": format!("speaks {revision} and nothing else"),
    })
}

fn discover() -> Value {
    let revision = Revision::R5;
    let result = json!({
        "supportedVersions": [revision.name()],
        "capabilities": capabilities(revision),
        "instructions": format!("speaks {revision} and nothing else"),
    });
    cached(result, revision)
}

/// Tells of changes until the client leaves.
async fn listen(call: &ServedCall) -> Result<Value, RpcFault> {
    let wanted = call.params["notifications"].as_object().ok_or_else(|| RpcFault::params("no notifications"))?;
    let known = |kind: &str| matches!(kind, "toolsListChanged" | "resourceSubscriptions" | "taskIds");
    let filter: Value =
        wanted.iter().filter(|(kind, _)| known(kind)).map(|(kind, on)| (kind.clone(), on.clone())).collect();
    let shared = &call.talk.shared;
    let guard = Listening { call, serial: shared.listen(&call.id, filter.clone(), call.out.clone()) };
    let params = json!({"_meta": {SUBSCRIPTION: call.id}, "notifications": filter});
    let acknowledged =
        json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params});
    // A client that left reads nothing more.
    let _ = call.out.send(Out::note(acknowledged)).await;
    std::future::pending::<()>().await;
    drop(guard);
    Ok(json!({}))
}

/// Ends the listening with the request, however it ends.
struct Listening<'a> {
    call: &'a ServedCall,
    serial: u64,
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.call.talk.shared.unlisten(self.serial);
    }
}
