//! A backend in memory that greets and lists by itself and leaves every call to the schedule: whether it is answered,
//! when, with what, how often, and whether the connection lives to see it.

use crate::dice::Dice;
use bytes::Bytes;
use serde_json::{Value, json};
use signalbox_engine::back::ToBackend;
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::{BoxFuture, Connector, Link, LinkEvents};
use std::sync::{Arc, Mutex, MutexGuard};

/// The resource that every backend has.
pub const RESOURCE: &str = "x://y";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// Which transport the backend seems to have.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A process for every connection.
    Pipe,
    /// Streamable HTTP.
    Web,
}

/// Who decides when calls are answered.
pub enum Manner {
    /// The schedule.
    Driven,
    /// Chance, in a task of its own: some calls are answered twice, and some kill their connection.
    Prompt(Mutex<Dice>),
}

/// How a call is answered.
#[derive(Copy, Clone, Debug)]
pub enum Reply {
    /// With a result.
    Result,
    /// With a result that says of itself that it is an error.
    ToolError,
    /// With a JSON-RPC error.
    Error,
    /// With the same result two times.
    Twice,
    /// With something that is no message.
    Garbage,
    /// With questions to the client, as the new era asks them.
    Questions,
    /// Not at all: its transport fails.
    Failure,
    /// Not at all: its session is not known any more.
    Expiry,
}

/// A request that waits for its answer.
#[derive(Clone)]
struct Waiting {
    link: usize,
    message: ToBackend,
    method: String,
    params: Value,
}

struct Wire {
    events: Arc<dyn LinkEvents>,
    open: bool,
}

#[derive(Default)]
struct State {
    wires: Vec<Wire>,
    waiting: Vec<Waiting>,
    /// Answered already; the schedule may answer them once more.
    spent: Vec<Waiting>,
    tools: usize,
    next_question: u64,
    silent: bool,
    shut: bool,
    full: bool,
}

struct Shared {
    shape: Shape,
    modern: bool,
    manner: Manner,
    state: Mutex<State>,
}

/// The backend, and the connector to it.
#[derive(Clone)]
pub struct Driven(Arc<Shared>);

impl Driven {
    /// A backend of this era.
    pub fn new(shape: Shape, modern: bool, manner: Manner) -> Self {
        Self(Arc::new(Shared { shape, modern, manner, state: Mutex::default() }))
    }

    /// How many requests wait for their answer.
    pub fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    /// The connections that are open, counted from 0.
    pub fn open_links(&self) -> Vec<usize> {
        let state = self.lock();
        (0..state.wires.len()).filter(|link| state.wires[*link].open).collect()
    }

    /// While it is silent it answers nothing at all by itself, not even a greeting. A greeting that the schedule
    /// answers later is answered in whichever era it came, as if servers of several versions stood behind one address.
    pub fn set_silent(&self, silent: bool) {
        self.lock().silent = silent;
    }

    /// While it is shut it takes no connection.
    pub fn set_shut(&self, shut: bool) {
        self.lock().shut = shut;
    }

    /// While it is full its links take no message.
    pub fn set_full(&self, full: bool) {
        self.lock().full = full;
    }

    /// Answers one of the requests that wait, whichever.
    pub fn answer(&self, dice: &mut Dice, reply: Reply) {
        let (waiting, events) = {
            let mut state = self.lock();
            if state.waiting.is_empty() {
                return;
            }
            let index = dice.below(state.waiting.len());
            let waiting = state.waiting.swap_remove(index);
            let events = state.events(waiting.link);
            state.spent.push(waiting.clone());
            (waiting, events)
        };
        if let Some(events) = events {
            self.reply(&events, &waiting, reply);
        }
    }

    /// Answers once more what was answered before.
    pub fn answer_again(&self, dice: &mut Dice) {
        let (spent, events) = {
            let state = self.lock();
            if state.spent.is_empty() {
                return;
            }
            let spent = state.spent[dice.below(state.spent.len())].clone();
            let events = state.events(spent.link);
            (spent, events)
        };
        if let Some(events) = events {
            self.reply(&events, &spent, Reply::Result);
        }
    }

    fn reply(&self, events: &Arc<dyn LinkEvents>, to: &Waiting, reply: Reply) {
        let Some(key) = to.message.key() else { return };
        let say = |member: &str, value: Value| {
            events.received(text(&json!({"jsonrpc": "2.0", "id": key, member: value})), Some(key), None);
        };
        let web = self.0.shape == Shape::Web;
        match reply {
            Reply::Error => say("error", json!({"code": -32000, "message": "no"})),
            Reply::ToolError => say("result", json!({"resultType": "complete", "content": [], "isError": true})),
            Reply::Garbage => events.received(Bytes::from_static(b"{\"jsonrpc\""), web.then_some(key), None),
            Reply::Failure if web => events.failed(key, Fault::new(FaultKind::BackendGarbage, "as the schedule says")),
            Reply::Expiry if web && !self.0.modern => events.expired(to.message.clone()),
            Reply::Questions if self.0.modern && to.params.get("inputResponses").is_none() => {
                say("result", questions());
            }
            Reply::Twice => {
                say("result", self.result(&to.method, &to.params));
                say("result", self.result(&to.method, &to.params));
            }
            _ => say("result", self.result(&to.method, &to.params)),
        }
        if matches!(reply, Reply::Garbage) && !web {
            // On a pipe nobody can say to which request that belonged.
            say("result", self.result(&to.method, &to.params));
        }
    }

    /// Tells of the progress of one of the requests that wait, if its client asked for that.
    pub fn progress(&self, dice: &mut Dice) {
        let Some((waiting, events)) = self.some_waiting(dice) else { return };
        let token = &waiting.params["_meta"]["progressToken"];
        if !token.is_null() {
            let params = json!({"progressToken": token, "progress": dice.below(1000)});
            self.tell(&events, &waiting, "notifications/progress", &params);
        }
    }

    /// Says something in the course of a call.
    pub fn log(&self, dice: &mut Dice) {
        let Some((waiting, events)) = self.some_waiting(dice) else { return };
        self.tell(&events, &waiting, "notifications/message", &json!({"level": "error", "data": "x"}));
    }

    /// Asks the client something in the course of a call.
    pub fn ask(&self, dice: &mut Dice) {
        let Some((waiting, events)) = self.some_waiting(dice) else { return };
        if self.0.modern {
            return;
        }
        let (method, params) = match dice.below(3) {
            0 => ("roots/list", json!({})),
            1 => ("sampling/createMessage", json!({"messages": [], "maxTokens": 1})),
            _ => ("elicitation/create", form()),
        };
        let id = {
            let mut state = self.lock();
            state.next_question += 1;
            state.next_question
        };
        let question = json!({"jsonrpc": "2.0", "id": format!("q{id}"), "method": method, "params": params});
        let about = waiting.message.key().filter(|_| self.0.shape == Shape::Web);
        events.received(text(&question), about, None);
        if dice.chance(10) {
            let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": format!("q{id}")}});
            events.received(text(&note), about, None);
        }
    }

    /// Tells one of its connections that its tools changed, which they have, or that its resource did.
    pub fn change(&self, dice: &mut Dice) {
        let links = self.open_links();
        if links.is_empty() {
            return;
        }
        let link = dice.pick(&links);
        let (method, params) = match dice.chance(50) {
            true => ("notifications/tools/list_changed", json!({})),
            false => ("notifications/resources/updated", json!({"uri": RESOURCE})),
        };
        let events = {
            let mut state = self.lock();
            state.tools = (state.tools + 1) % 3;
            Arc::clone(&state.wires[link].events)
        };
        events.received(text(&json!({"jsonrpc": "2.0", "method": method, "params": params})), None, None);
    }

    /// Ends a connection with everything on it.
    pub fn kill(&self, link: usize) {
        if let Some(events) = self.shut_link(link) {
            events.lost("killed".to_owned());
        }
    }

    fn some_waiting(&self, dice: &mut Dice) -> Option<(Waiting, Arc<dyn LinkEvents>)> {
        let state = self.lock();
        let waiting = state.waiting.get(dice.below(state.waiting.len()))?.clone();
        let events = state.events(waiting.link)?;
        Some((waiting, events))
    }

    fn tell(&self, events: &Arc<dyn LinkEvents>, about: &Waiting, method: &str, params: &Value) {
        let about = about.message.key().filter(|_| self.0.shape == Shape::Web);
        events.received(text(&json!({"jsonrpc": "2.0", "method": method, "params": params})), about, None);
    }

    fn shut_link(&self, link: usize) -> Option<Arc<dyn LinkEvents>> {
        let mut state = self.lock();
        state.waiting.retain(|one| one.link != link);
        state.spent.retain(|one| one.link != link);
        let wire = &mut state.wires[link];
        std::mem::take(&mut wire.open).then(|| Arc::clone(&wire.events))
    }

    fn result(&self, method: &str, params: &Value) -> Value {
        let extra = self.lock().tools;
        let tools: Vec<Value> = (0..=extra + 1)
            .map(|number| json!({"name": format!("t{number}"), "inputSchema": {"type": "object"}}))
            .collect();
        let mut result = match method {
            "initialize" => json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": {
                    "tools": {"listChanged": true}, "prompts": {}, "resources": {"subscribe": true}, "logging": {}
                },
                "serverInfo": {"name": "driven", "version": "1"}
            }),
            "server/discover" => json!({
                "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
                "capabilities": {"tools": {"listChanged": true}, "prompts": {}, "resources": {"subscribe": true}}
            }),
            "tools/list" => json!({"tools": tools, "ttlMs": 0, "cacheScope": "private"}),
            "prompts/list" => json!({"prompts": [{"name": "p"}], "ttlMs": 0, "cacheScope": "private"}),
            "resources/list" => {
                json!({"resources": [{"uri": RESOURCE, "name": "y"}], "ttlMs": 0, "cacheScope": "private"})
            }
            "resources/templates/list" => json!({"resourceTemplates": [], "ttlMs": 0, "cacheScope": "private"}),
            "resources/read" => {
                json!({"contents": [{"uri": RESOURCE, "text": "y"}], "ttlMs": 500, "cacheScope": "public"})
            }
            "prompts/get" => json!({"messages": []}),
            "tools/call" => json!({"content": [{"type": "text", "text": "done"}]}),
            _ => json!({}),
        };
        if self.0.modern {
            result["resultType"] = json!("complete");
        }
        result
    }

    /// Takes a request while the gateway holds a lock, and answers without it.
    fn take(&self, link: usize, message: ToBackend) {
        let body: Value = serde_json::from_slice(message.bytes()).unwrap();
        let (Some(method), Some(key)) = (body["method"].as_str(), message.key()) else { return };
        let waiting = Waiting { link, method: method.to_owned(), params: body["params"].clone(), message };
        let is_call = matches!(method, "tools/call" | "resources/read" | "prompts/get" | "completion/complete");
        if self.lock().silent || (is_call && matches!(self.0.manner, Manner::Driven)) {
            return self.lock().waiting.push(waiting);
        }
        let this = self.clone();
        tokio::spawn(async move {
            let (reply, dies) = this.chooses(is_call).await;
            let Some(events) = this.lock().events(link) else { return };
            match &*waiting.method {
                "server/discover" if !this.0.modern => {
                    let error = json!({"code": -32601, "message": "Method not found"});
                    events.received(text(&json!({"jsonrpc": "2.0", "id": key, "error": error})), Some(key), None);
                }
                "initialize" if this.0.modern => {
                    let error = json!({"code": -32601, "message": "Method not found"});
                    events.received(text(&json!({"jsonrpc": "2.0", "id": key, "error": error})), Some(key), None);
                }
                "subscriptions/listen" => {
                    let params = json!({"notifications": waiting.params["notifications"]});
                    let note = json!({"jsonrpc": "2.0", "method": ACKNOWLEDGED, "params": params});
                    events.received(text(&note), Some(key), None);
                }
                _ if dies => this.kill(link),
                _ => this.reply(&events, &waiting, reply),
            }
        });
    }

    /// How a backend that answers by itself treats a call, after some time.
    async fn chooses(&self, is_call: bool) -> (Reply, bool) {
        let Manner::Prompt(dice) = &self.0.manner else { return (Reply::Result, false) };
        if !is_call {
            return (Reply::Result, false);
        }
        let (yields, reply, dies) = {
            let mut dice = dice.lock().unwrap();
            let reply = dice.pick(&[Reply::Result, Reply::Result, Reply::Twice, Reply::Error]);
            (dice.below(20), reply, dice.below(400) == 0)
        };
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
        (reply, dies)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }
}

impl State {
    fn events(&self, link: usize) -> Option<Arc<dyn LinkEvents>> {
        self.wires.get(link).filter(|wire| wire.open).map(|wire| Arc::clone(&wire.events))
    }
}

impl Connector for Driven {
    fn open(&self, events: Arc<dyn LinkEvents>) -> BoxFuture<Result<Arc<dyn Link>, Fault>> {
        let this = self.clone();
        Box::pin(async move {
            tokio::task::yield_now().await;
            let mut state = this.lock();
            if state.shut {
                return Err(Fault::new(FaultKind::BackendDown, "as the schedule says"));
            }
            let link = state.wires.len();
            state.wires.push(Wire { events, open: true });
            drop(state);
            Ok(Arc::new(DrivenLink { backend: this, link }) as Arc<dyn Link>)
        })
    }

    fn carries_headers(&self) -> bool {
        self.0.shape == Shape::Web
    }

    fn is_process(&self) -> bool {
        self.0.shape == Shape::Pipe
    }

    fn kind(&self) -> &'static str {
        "driven"
    }
}

struct DrivenLink {
    backend: Driven,
    link: usize,
}

impl Link for DrivenLink {
    fn send(&self, message: ToBackend) -> Result<(), Fault> {
        let state = self.backend.lock();
        let open = state.wires[self.link].open;
        if !open || state.full {
            return Err(Fault::new(FaultKind::BackendDown, "as the schedule says"));
        }
        drop(state);
        self.backend.take(self.link, message);
        Ok(())
    }

    fn close(&self) {
        self.backend.shut_link(self.link);
    }
}

fn form() -> Value {
    json!({"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}})
}

fn questions() -> Value {
    let asked = json!({"k": {"method": "elicitation/create", "params": form()}});
    json!({"resultType": "input_required", "inputRequests": asked, "requestState": "s"})
}

fn text(value: &Value) -> Bytes {
    Bytes::from(value.to_string())
}
