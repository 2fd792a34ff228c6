//! The lists of the server, and what is read by name: prompts, resources, completions.

use serde_json::{Value, json};

use super::fault::RpcFault;
use crate::revision::Revision;

/// The resource that may be followed.
pub const WATCHED: &str = "test://watched";
/// How many prompts there are.
const PROMPTS: usize = 5;
/// How many come at once.
const PAGE: usize = 2;
/// What the argument of the first prompt may be.
const NAMES: [&str; 3] = ["alice", "albert", "bob"];

/// All tools of a revision.
pub fn tools(revision: Revision, extra: bool) -> Value {
    let mut tools = vec![
        tool("echo", "Answers with its text.", &json!({"text": {"type": "string"}})),
        structured(revision),
        tool("fail", "Fails, as a result.", &json!({})),
        tool("progress", "Tells its progress in steps.", &json!({"steps": {"type": "integer"}})),
        tool("slow", "Takes its time.", &json!({"ms": {"type": "integer"}})),
        tool("log", "Logs at debug, info and error.", &json!({})),
        tool("change_tools", "Turns the tool `extra` on or off.", &json!({})),
        tool("touch", "Changes a resource.", &json!({"uri": {"type": "string"}})),
        tool("ask_sampling", "Asks the model.", &json!({})),
        tool("ask_roots", "Asks for the roots.", &json!({})),
        tool("counts", "Tells what was counted.", &json!({})),
    ];
    if revision >= Revision::R2 {
        tools.push(tool("audio", "Answers with a sound.", &json!({})));
    }
    if revision >= Revision::R3 {
        tools.push(tool("link", "Answers with a link to a resource.", &json!({})));
        tools.push(tool("ask_elicitation", "Asks the user's name.", &json!({})));
        tools.push(tool("ask_twice", "Asks the user, then the model.", &json!({})));
        tools.push(tool("ask_both", "Asks the user and the model at once.", &json!({})));
    }
    if revision >= Revision::R4 {
        let properties = json!({"ms": {"type": "integer"}, "ask": {"type": "boolean"}});
        let mut task = tool("task", "Works in the background.", &properties);
        if revision == Revision::R4 {
            task["execution"] = json!({"taskSupport": "optional"});
        }
        tools.push(task);
    }
    if revision == Revision::R5 {
        let mut number = tool("number", "Answers with a number.", &json!({}));
        number["outputSchema"] = json!({"type": "integer"});
        tools.push(number);
    }
    if extra {
        tools.push(tool("extra", "Is there now and then.", &json!({})));
    }
    json!({"tools": tools})
}

/// A tool as it is listed.
pub fn tool(name: &str, description: &str, properties: &Value) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object", "properties": properties}})
}

fn structured(revision: Revision) -> Value {
    let mut tool = tool("structured", "Answers with structured content, where there is such a thing.", &json!({}));
    if revision.structures() {
        let sum = json!({"sum": {"type": "integer"}});
        tool["outputSchema"] = json!({"type": "object", "properties": sum, "required": ["sum"]});
    }
    tool
}

/// A page of prompts.
///
/// # Errors
/// When the cursor is none of ours.
pub fn prompts(revision: Revision, params: &Value) -> Result<Value, RpcFault> {
    let start = match &params["cursor"] {
        Value::Null => 0,
        Value::String(cursor) => {
            let start = cursor.strip_prefix("from-").and_then(|start| start.parse().ok());
            start.filter(|start| *start < PROMPTS).ok_or_else(|| RpcFault::params("no cursor of this server"))?
        }
        _ => return Err(RpcFault::params("a cursor is a string")),
    };
    let end = (start + PAGE).min(PROMPTS);
    let prompts: Vec<Value> = (start + 1..=end).map(|number| listed_prompt(revision, number)).collect();
    let mut result = json!({"prompts": prompts});
    if end < PROMPTS {
        result["nextCursor"] = json!(format!("from-{end}"));
    }
    Ok(result)
}

fn listed_prompt(revision: Revision, number: usize) -> Value {
    let mut prompt = json!({"name": format!("prompt_{number}"), "description": format!("Prompt {number}.")});
    if number == 1 {
        prompt["arguments"] = json!([{"name": "name", "required": true}]);
    }
    if revision >= Revision::R3 {
        prompt["title"] = json!(format!("Prompt {number}"));
    }
    prompt
}

/// One prompt.
///
/// # Errors
/// When there is no such prompt, or its argument is missing.
pub fn prompt(params: &Value) -> Result<Value, RpcFault> {
    let name = params["name"].as_str().unwrap_or_default();
    let known = (1..=PROMPTS).any(|number| name == format!("prompt_{number}"));
    if !known {
        return Err(RpcFault::params(format!("Unknown prompt: {name}")));
    }
    let text = match (name, params["arguments"]["name"].as_str()) {
        ("prompt_1", None) => return Err(RpcFault::params("the argument `name` is missing")),
        ("prompt_1", Some(who)) => format!("prompt_1 for {who}"),
        _ => name.to_owned(),
    };
    Ok(json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}))
}

/// All resources.
pub fn resources(revision: Revision) -> Value {
    let one = |name: &str| {
        let mut resource = json!({"uri": format!("test://{name}"), "name": name, "mimeType": "text/plain"});
        if revision >= Revision::R3 {
            resource["title"] = json!(name);
        }
        resource
    };
    json!({"resources": [one("static"), one("watched")]})
}

/// All templates.
pub fn templates(_: Revision) -> Value {
    json!({"resourceTemplates": [{"uriTemplate": "test://item/{id}", "name": "item", "mimeType": "text/plain"}]})
}

/// The URI that a request names, if there is such a resource.
///
/// # Errors
/// When there is not.
pub fn known(params: &Value, revision: Revision) -> Result<&str, RpcFault> {
    let uri = params["uri"].as_str().ok_or_else(|| RpcFault::params("no uri"))?;
    let item = uri.strip_prefix("test://item/").is_some_and(|id| !id.is_empty() && !id.contains('/'));
    if item || uri == WATCHED || uri == "test://static" {
        return Ok(uri);
    }
    let code = if revision.modern() { -32602 } else { -32002 };
    Err(RpcFault::new(code, "Resource not found").with(json!({"uri": uri})))
}

/// One resource.
///
/// # Errors
/// When there is no such resource.
pub fn read(params: &Value, revision: Revision) -> Result<Value, RpcFault> {
    let uri = known(params, revision)?;
    let text = uri.strip_prefix("test://").unwrap_or(uri).replace('/', " ");
    Ok(json!({"contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]}))
}

/// What an argument may be.
///
/// # Errors
/// When there is nothing to complete there.
pub fn completion(params: &Value) -> Result<Value, RpcFault> {
    let (reference, argument) = (&params["ref"], &params["argument"]);
    let begun = argument["value"].as_str().ok_or_else(|| RpcFault::params("no value to complete"))?;
    let all: &[&str] = match (reference["type"].as_str(), argument["name"].as_str()) {
        (Some("ref/prompt"), Some("name")) if reference["name"] == "prompt_1" => &NAMES,
        (Some("ref/resource"), Some("id")) if reference["uri"] == "test://item/{id}" => &["1", "2"],
        _ => return Err(RpcFault::params("nothing to complete there")),
    };
    let values: Vec<&str> = all.iter().copied().filter(|value| value.starts_with(begun)).collect();
    Ok(json!({"completion": {"values": values, "total": values.len(), "hasMore": false}}))
}
