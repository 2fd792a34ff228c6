//! A backend in memory: what it does with a message is a closure's answer.

use bytes::Bytes;
use serde_json::{Value, json};
use signalbox_engine::back::ToBackend;
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::{BoxFuture, Connector, Link, LinkEvents};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Most messages that a backend reacts to; a gateway that never stops asking must not keep a test from ending.
const PATIENCE: usize = 2_000;
/// The word under which a script is asked what to do with a new connection.
pub const OPEN: &str = "open";
/// The word under which the answers to its questions are heard; their params are the whole message.
pub const ANSWER: &str = "answer";

/// A message that reached the backend.
#[derive(Clone, Debug)]
pub struct Heard {
    /// On which connection, counted from 1.
    pub link: usize,
    /// How often this connection has heard this method by now.
    pub nth: usize,
    /// The method, or [`OPEN`].
    pub method: String,
    /// Its params.
    pub params: Value,
}

/// What the backend does then, one after the other.
pub enum Step {
    /// Answers with this result.
    Say(Value),
    /// Answers with this result in an array, after these other things.
    Together(Vec<Value>, Value),
    /// Answers with an error.
    Deny(i64),
    /// Sends a notification.
    Tell(&'static str, Value),
    /// Sends a notification on the stream of the message it reacts to.
    TellHere(&'static str, Value),
    /// Asks the client something in the course of the call, under this id.
    Ask(u64, &'static str, Value),
    /// Waits until one more answer to a question has come on this connection.
    Hear,
    /// Waits before the next step.
    Wait(u64),
    /// Says that it does not know the session.
    Forget,
    /// Lets the transport fail for this message.
    Fail(FaultKind),
    /// Ends.
    Die,
    /// Lets the link refuse the message, or the connection.
    Refuse(FaultKind),
}

/// Which transport the backend seems to have.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Shape {
    /// A process for every connection.
    Pipe,
    /// Streamable HTTP.
    Web,
}

type Script = dyn Fn(&Heard) -> Vec<Step> + Send + Sync;

struct Wire {
    events: Arc<dyn LinkEvents>,
    open: bool,
}

#[derive(Default)]
struct State {
    wires: Vec<Wire>,
    heard: Vec<Heard>,
}

struct Shared {
    shape: Shape,
    script: Box<Script>,
    state: Mutex<State>,
}

/// The backend, and the connector to it.
#[derive(Clone)]
pub struct Fake(Arc<Shared>);

impl Fake {
    /// A backend that does what the script says.
    pub fn new(shape: Shape, script: impl Fn(&Heard) -> Vec<Step> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared { shape, script: Box::new(script), state: Mutex::default() }))
    }

    /// Everything of this method that it heard.
    pub fn heard(&self, method: &str) -> Vec<Heard> {
        self.lock().heard.iter().filter(|heard| heard.method == method).cloned().collect()
    }

    /// Everything of this method that it heard on one connection.
    pub fn heard_on(&self, link: usize, method: &str) -> Vec<Heard> {
        self.heard(method).into_iter().filter(|heard| heard.link == link).collect()
    }

    /// The connections that are open now.
    pub fn open_links(&self) -> Vec<usize> {
        let state = self.lock();
        (1..=state.wires.len()).filter(|link| state.wires[link - 1].open).collect()
    }

    /// Ends a connection.
    pub fn kill(&self, link: usize) {
        if let Some(events) = self.shut(link) {
            events.lost("killed".to_owned());
        }
    }

    /// Sends a notification on a connection.
    pub fn tell(&self, link: usize, method: &str, params: &Value) {
        let events = Arc::clone(&self.lock().wires[link - 1].events);
        events.received(text(&json!({"jsonrpc": "2.0", "method": method, "params": params})), None, None);
    }

    /// Sends a request on a connection that belongs to no call.
    pub fn ask(&self, link: usize, id: u64, method: &str, params: &Value) {
        let events = Arc::clone(&self.lock().wires[link - 1].events);
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        events.received(text(&request), None, None);
    }

    /// Says that it does not know the general stream of a connection.
    pub fn doubt(&self, link: usize) {
        let events = Arc::clone(&self.lock().wires[link - 1].events);
        events.doubted();
    }

    fn shut(&self, link: usize) -> Option<Arc<dyn LinkEvents>> {
        let mut state = self.lock();
        let wire = &mut state.wires[link - 1];
        std::mem::take(&mut wire.open).then(|| Arc::clone(&wire.events))
    }

    fn react(&self, link: usize, method: &str, params: Value) -> Vec<Step> {
        let heard = {
            let mut state = self.lock();
            let before = state.heard.iter().filter(|one| one.link == link && one.method == method).count();
            let heard = Heard { link, nth: before + 1, method: method.to_owned(), params };
            state.heard.push(heard.clone());
            if state.heard.len() > PATIENCE {
                return Vec::new();
            }
            heard
        };
        (self.0.script)(&heard)
    }

    async fn perform(self, link: usize, message: ToBackend, steps: Vec<Step>) {
        let mut wanted = self.heard_on(link, ANSWER).len();
        for step in steps {
            let events = {
                let state = self.lock();
                let wire = &state.wires[link - 1];
                if !wire.open {
                    return;
                }
                Arc::clone(&wire.events)
            };
            let answer = |member: &str, value: Value| {
                if let Some(key) = message.key() {
                    let bytes = text(&json!({"jsonrpc": "2.0", "id": key, member: value}));
                    events.received(bytes, None, None);
                }
            };
            match step {
                Step::Say(result) => answer("result", result),
                Step::Together(mut all, result) => {
                    all.push(json!({"jsonrpc": "2.0", "id": message.key(), "result": result}));
                    events.received(text(&Value::from(all)), None, None);
                }
                Step::Deny(code) => answer("error", json!({"code": code, "message": "no"})),
                Step::Tell(method, params) => self.tell(link, method, &params),
                Step::TellHere(method, params) => {
                    let note = json!({"jsonrpc": "2.0", "method": method, "params": params});
                    events.received(text(&note), message.key(), None);
                }
                Step::Ask(id, method, params) => {
                    let question = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
                    let about = message.key().filter(|_| self.0.shape == Shape::Web);
                    events.received(text(&question), about, None);
                }
                Step::Hear => {
                    wanted += 1;
                    while self.heard_on(link, ANSWER).len() < wanted {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                }
                Step::Wait(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
                Step::Forget => events.expired(message.clone()),
                Step::Fail(kind) => events.failed(message.key().unwrap_or(0), Fault::new(kind, "as the script says")),
                Step::Die => self.kill(link),
                Step::Refuse(_) => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }
}

impl Connector for Fake {
    fn open(&self, events: Arc<dyn LinkEvents>) -> BoxFuture<Result<Arc<dyn Link>, Fault>> {
        let fake = self.clone();
        let link = {
            let mut state = self.lock();
            state.wires.push(Wire { events, open: true });
            state.wires.len()
        };
        Box::pin(async move {
            for step in fake.react(link, OPEN, Value::Null) {
                match step {
                    Step::Wait(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
                    Step::Refuse(kind) => {
                        fake.shut(link);
                        return Err(Fault::new(kind, "as the script says"));
                    }
                    _ => {}
                }
            }
            Ok(Arc::new(FakeLink { fake, link }) as Arc<dyn Link>)
        })
    }

    fn carries_headers(&self) -> bool {
        self.0.shape == Shape::Web
    }

    fn is_process(&self) -> bool {
        self.0.shape == Shape::Pipe
    }

    fn kind(&self) -> &'static str {
        "fake"
    }
}

struct FakeLink {
    fake: Fake,
    link: usize,
}

impl Link for FakeLink {
    fn send(&self, message: ToBackend) -> Result<(), Fault> {
        let body: Value = serde_json::from_slice(message.bytes()).unwrap();
        let method = body["method"].as_str().unwrap_or(ANSWER);
        let params = if method == ANSWER { body.clone() } else { body["params"].clone() };
        let steps = self.fake.react(self.link, method, params);
        if let Some(Step::Refuse(kind)) = steps.first() {
            return Err(Fault::new(*kind, "as the script says"));
        }
        // The gateway holds a lock here, and is answered without it.
        tokio::spawn(self.fake.clone().perform(self.link, message, steps));
        Ok(())
    }

    fn close(&self) {
        self.fake.shut(self.link);
    }
}

/// What a well-behaved backend of the old era says: one tool, one prompt, one resource.
pub fn plain(heard: &Heard) -> Vec<Step> {
    let result = match &*heard.method {
        "initialize" => json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {
                "tools": {"listChanged": true}, "prompts": {}, "resources": {"subscribe": true}, "logging": {}
            },
            "serverInfo": {"name": "fake", "version": "1"}
        }),
        "server/discover" => return vec![Step::Deny(-32601)],
        "tools/list" => tools(&["t1"]),
        "prompts/list" => json!({"prompts": [{"name": "p"}]}),
        "resources/list" => json!({"resources": [{"uri": "x://y", "name": "y"}]}),
        "resources/templates/list" => json!({"resourceTemplates": []}),
        "tools/call" => said(&format!("link {}", heard.link)),
        _ => json!({}),
    };
    vec![Step::Say(result)]
}

/// The result of `tools/list`.
pub fn tools(names: &[&str]) -> Value {
    let list: Vec<Value> = names.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}})).collect();
    json!({"resultType": "complete", "tools": list})
}

/// The result of a tool that says something.
pub fn said(what: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": what}]})
}

fn text(value: &Value) -> Bytes {
    Bytes::from(value.to_string())
}
