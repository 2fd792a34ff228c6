//! What the bridge writes, against the published schemas where they lie beside the checkout.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail wherever it wants, and says what it skipped"
)]

use bytes::Bytes;
use serde_json::{Value, json};
use signalbox_engine::ClientProfile;
use signalbox_engine::bridge::tasks::{self, Payload};
use signalbox_engine::bridge::{capabilities, content, errors, listing, questions};
use signalbox_engine::catalog::ListKind;
use signalbox_wire::Revision::{
    self, V2024_11_05 as R1, V2025_03_26 as R2, V2025_06_18 as R3, V2025_11_25 as R4, V2026_07_28 as R5,
};
use signalbox_wire::{Edits, Envelope};
use std::path::PathBuf;

/// The definitions of one revision.
struct Schema {
    root: Value,
}

impl Schema {
    /// `None`, said aloud, when the schemas are not there.
    fn of(revision: Revision) -> Option<Self> {
        let file = format!("../../../shared/data/schema/{revision}.json");
        let Ok(bytes) = std::fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file)) else {
            println!("skipped: no schema of {revision} beside the checkout");
            return None;
        };
        Some(Self { root: serde_json::from_slice(&bytes).unwrap() })
    }

    fn check(&self, name: &str, value: &[u8]) {
        let parsed: Value = serde_json::from_slice(value).unwrap();
        let definitions = self.root.get("definitions").or(self.root.get("$defs")).unwrap();
        let schema = definitions.get(name).unwrap_or_else(|| panic!("no definition {name}"));
        if let Err(fault) = self.fits(schema, &parsed) {
            panic!("{} is no {name}: {fault}", String::from_utf8_lossy(value));
        }
    }

    fn refuses(&self, name: &str, value: &[u8]) {
        let parsed: Value = serde_json::from_slice(value).unwrap();
        let definitions = self.root.get("definitions").or(self.root.get("$defs")).unwrap();
        assert!(self.fits(&definitions[name], &parsed).is_err(), "{} is a {name}", String::from_utf8_lossy(value));
    }

    /// The keywords that the schemas of the protocol use.
    fn fits(&self, schema: &Value, value: &Value) -> Result<(), Fault> {
        if let Some(reference) = schema["$ref"].as_str() {
            return self.fits(self.root.pointer(&reference[1..]).unwrap(), value);
        }
        if let Some(all) = schema["allOf"].as_array() {
            all.iter().try_for_each(|one| self.fits(one, value))?;
        }
        if let Some(any) = schema["anyOf"].as_array()
            && !any.iter().any(|one| self.fits(one, value).is_ok())
        {
            return Err(Fault(format!("{value} fits none of the alternatives")));
        }
        let is = |name: &str| match name {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            "integer" => value.is_i64() || value.is_u64(),
            _ => value.is_number(),
        };
        let typed = match &schema["type"] {
            Value::String(name) => is(name),
            Value::Array(names) => names.iter().any(|name| is(name.as_str().unwrap())),
            _ => true,
        };
        let constant = schema.get("const").is_none_or(|only| only == value);
        let listed = schema["enum"].as_array().is_none_or(|all| all.contains(value));
        if !typed || !constant || !listed {
            return Err(Fault(format!("{value} is not {schema}")));
        }
        self.members_fit(schema, value)
    }

    fn members_fit(&self, schema: &Value, value: &Value) -> Result<(), Fault> {
        for name in schema["required"].as_array().into_iter().flatten() {
            if value.is_object() && value.get(name.as_str().unwrap()).is_none() {
                return Err(Fault(format!("{name} is missing")));
            }
        }
        for (name, member) in value.as_object().into_iter().flatten() {
            match schema["properties"].get(name).or(schema.get("additionalProperties")) {
                Some(own) if own.is_object() => self.fits(own, member)?,
                _ => {}
            }
        }
        let mut elements = value.as_array().into_iter().flatten();
        if schema["items"].is_object() { elements.try_for_each(|one| self.fits(&schema["items"], one)) } else { Ok(()) }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Fault(String);

fn answer(result: &Value) -> Envelope {
    Envelope::parse(Bytes::from(json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string())).unwrap()
}

fn downgraded(method: &str, to: Revision, result: &Value) -> Vec<u8> {
    let message = answer(result);
    let mut edits = Edits::new();
    let _ = content::downgrade(method, to, &message, &mut edits);
    Envelope::parse(edits.apply(message.bytes())).unwrap().result().unwrap().to_vec()
}

#[test]
fn results_of_the_new_era_fit_the_schema_of_every_old_client() {
    let call = json!({
        "resultType": "complete",
        "content": [
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            {"type": "resource_link", "name": "n", "uri": "file:///a", "description": "d"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        ],
        "structuredContent": [1, 2],
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}},
    });
    let prompt = json!({
        "resultType": "complete",
        "messages": [
            {"role": "user", "content": {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}},
            {"role": "assistant", "content": {"type": "resource_link", "name": "n", "uri": "file:///a"}},
        ],
    });
    for to in [R1, R2, R3, R4] {
        let Some(schema) = Schema::of(to) else { return };
        schema.check("CallToolResult", &downgraded("tools/call", to, &call));
        schema.check("GetPromptResult", &downgraded("prompts/get", to, &prompt));
        if to < R3 {
            schema.refuses("CallToolResult", call.to_string().as_bytes());
        }
    }
}

#[test]
fn results_of_old_servers_fit_the_schema_of_the_new_era() {
    let Some(schema) = Schema::of(R5) else { return };
    for (method, name, result) in [
        ("tools/call", "CallToolResult", json!({"content": []})),
        ("prompts/get", "GetPromptResult", json!({"messages": []})),
        ("resources/read", "ReadResourceResult", json!({"contents": [{"uri": "a:b", "text": "t"}]})),
        ("completion/complete", "CompleteResult", json!({"completion": {"values": []}})),
    ] {
        let message = answer(&result);
        schema.refuses(name, message.result().unwrap());
        let mut edits = Edits::new();
        content::upgrade(method, &message, &mut edits);
        schema.check(name, Envelope::parse(edits.apply(message.bytes())).unwrap().result().unwrap());
    }
}

#[test]
fn questions_fit_the_schema_of_whoever_is_asked() {
    let form = json!({"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {
        "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
        "count": {"type": "integer", "default": 1},
    }}});
    let url = json!({"mode": "url", "message": "?", "url": "https://a/"});
    let ask = |to, params: &Value| {
        let params = questions::to_legacy("elicitation/create", params.to_string().as_bytes(), to, "minted").unwrap();
        let params: Value = serde_json::from_slice(&params).unwrap();
        json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params}).to_string()
    };
    let (Some(r3), Some(r4), Some(r5)) = (Schema::of(R3), Schema::of(R4), Schema::of(R5)) else { return };
    r3.check("ElicitRequest", ask(R3, &form).as_bytes());
    r4.check("ElicitRequest", ask(R4, &form).as_bytes());
    r4.check(
        "ElicitRequestURLParams",
        &questions::to_legacy("elicitation/create", url.to_string().as_bytes(), R4, "m").unwrap(),
    );
    r4.refuses("ElicitRequestURLParams", url.to_string().as_bytes());

    let old = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}, "task": {"ttl": 1}});
    let new = questions::to_modern("elicitation/create", old.to_string().as_bytes());
    r5.check("ElicitRequestFormParams", &new);
    let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32042, "message": "m", "data": {
        "elicitations": [{"mode": "url", "elicitationId": "e", "url": "https://a/", "message": "?"}]}}});
    let error = Envelope::parse(Bytes::from(error.to_string())).unwrap();
    r5.check("InputRequest", &errors::url_elicitations(&error).unwrap()[0].to_input_request());
}

#[test]
fn sampling_fits_the_schema_of_whoever_is_asked() {
    let asked = json!({"maxTokens": 1, "messages": [{"role": "user", "content": [
        {"type": "text", "text": "a"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}]}]});
    let answered = json!({"role": "assistant", "model": "m", "content": [{"type": "text", "text": "a"}]}).to_string();
    for to in [R1, R2, R3, R4] {
        let Some(schema) = Schema::of(to) else { return };
        let params = questions::to_legacy("sampling/createMessage", asked.to_string().as_bytes(), to, "").unwrap();
        let params: Value = serde_json::from_slice(&params).unwrap();
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": params});
        schema.check("CreateMessageRequest", request.to_string().as_bytes());
        let result = questions::answer_to_legacy("sampling/createMessage", answered.as_bytes(), to).unwrap();
        schema.check("CreateMessageResult", &result);
    }
}

#[test]
fn declared_capabilities_fit_the_schema_of_whoever_reads_them() {
    let all = r#"{"sampling":{"tools":{}},"roots":{"listChanged":true},"elicitation":{"form":{},"url":{}},
        "experimental":{"x":{}},"tasks":{"list":{}},"extensions":{"a/b":{}}}"#;
    for revision in [R1, R2, R3, R4] {
        let (Some(old), Some(new)) = (Schema::of(revision), Schema::of(R5)) else { return };
        let client = ClientProfile::new(revision, Bytes::from_static(all.as_bytes()), None);
        new.check("ClientCapabilities", capabilities::to_modern(&client, &[("c/d", "{}")]).as_bytes());
        old.check("ClientCapabilities", capabilities::to_legacy(all.as_bytes(), revision).as_bytes());
        new.check("ClientCapabilities", capabilities::required("roots/list", b"").as_bytes());
    }
}

#[test]
fn tools_fit_the_schema_of_the_client_that_lists_them() {
    let tool = json!({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}}).to_string();
    let tool = Bytes::from(tool);
    for to in [R3, R4, R5] {
        let Some(schema) = Schema::of(to) else { return };
        schema.check("Tool", &listing::entry(ListKind::Tools, to, &tool));
        if to < R5 {
            schema.refuses("Tool", &tool);
        }
    }
}

#[test]
fn tasks_of_the_extension_fit_the_core_of_2025_11_25() {
    let Some(schema) = Schema::of(R4) else { return };
    let new = json!({"resultType": "task", "taskId": "t", "status": "working", "createdAt": "c", "lastUpdatedAt": "u",
        "ttlMs": null, "pollIntervalMs": 5});
    schema.check("CreateTaskResult", &tasks::create_to_legacy(new.to_string().as_bytes()).unwrap());
    let done = json!({"resultType": "complete", "taskId": "t", "status": "completed", "createdAt": "c",
        "lastUpdatedAt": "u", "ttlMs": 7, "result": {"content": []}});
    schema.check("GetTaskResult", &tasks::get_to_legacy(done.to_string().as_bytes()).unwrap());
    schema.refuses("GetTaskResult", done.to_string().as_bytes());
    let state = tasks::TaskState::read(done.to_string().as_bytes()).unwrap();
    schema.check("GetTaskResult", &state.legacy());
    schema.check("CreateTaskResult", &state.created_legacy());
    assert!(matches!(Payload::read(done.to_string().as_bytes()), Payload::Result(_)));
}
