//! Clients of both eras without a transport, what they sent and what they got. They read when the schedule lets them.

use crate::dice::Dice;
use crate::driven::RESOURCE;
use bytes::Bytes;
use serde_json::{Value, json};
use signalbox_engine::front::Mode;
use signalbox_engine::{Caller, Carrier};
use signalbox_runtime::{Batch, Gateway, Session, StreamReader};
use signalbox_wire::Envelope;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// A request and what became of it.
#[derive(Debug)]
pub struct Sent {
    /// How often it was sent under this id.
    pub times: usize,
    /// How often it was answered.
    pub answers: usize,
    /// Its client has cancelled it or left, so that there need not be an answer.
    pub excused: bool,
    /// The method.
    pub method: String,
    /// Who sent it, by the numbers of clients that keep a session.
    pub by: Vec<u64>,
}

/// A client that keeps a session.
struct Client {
    number: u64,
    session: Arc<Session>,
    pipe: bool,
    general: Option<StreamReader>,
    /// What it was asked and has not answered yet.
    questions: Vec<(Value, String)>,
}

/// A stream that a client reads, and the requests that are to be answered on it.
struct Open {
    stream: StreamReader,
    /// The client; none for a request of the new era.
    of: Option<usize>,
    ids: Vec<u64>,
    listens: bool,
}

/// A call of the new era that wants answers before it goes on.
struct Round {
    caller: usize,
    params: Value,
}

/// All of them.
pub struct Clients {
    gateway: Arc<Gateway>,
    callers: Vec<Caller>,
    clients: Vec<Client>,
    open: Vec<Open>,
    rounds: Vec<Round>,
    calls: BTreeMap<u64, (usize, Value)>,
    /// Every request, by its id.
    pub sent: BTreeMap<u64, Sent>,
    /// Every session there ever was.
    pub sessions: Vec<Weak<Session>>,
    /// What should not have come.
    pub faults: Vec<String>,
    /// How often a client was asked something by a request.
    pub asked: usize,
    /// How often a call of the new era was answered with questions.
    pub rounds_begun: usize,
    next: u64,
}

impl Clients {
    /// Nobody yet.
    pub fn new(gateway: &Arc<Gateway>) -> Self {
        let callers = vec![Caller::anonymous("test"), Caller::local("ann", "test"), Caller::local("bob", "test")];
        Self {
            gateway: Arc::clone(gateway),
            callers,
            clients: Vec::new(),
            open: Vec::new(),
            rounds: Vec::new(),
            calls: BTreeMap::new(),
            sent: BTreeMap::new(),
            sessions: Vec::new(),
            faults: Vec::new(),
            asked: 0,
            rounds_begun: 0,
            next: 0,
        }
    }

    /// A client of the old era comes, with a session over HTTP or on a pipe, and greets.
    pub fn arrive(&mut self, dice: &mut Dice) {
        self.next += 1;
        let pipe = dice.chance(30);
        let mode = if pipe { Mode::Pipe } else { Mode::Session };
        let caller = self.callers[dice.below(self.callers.len())].clone();
        let Ok(session) = self.gateway.open_session(caller, mode, &format!("s{}", self.next), "test") else { return };
        self.sessions.push(Arc::downgrade(&session));
        let general = if pipe { session.open_general() } else { None };
        self.clients.push(Client { number: self.next, session, pipe, general, questions: Vec::new() });
        let revision = dice.pick(&["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]);
        let client = self.clients.len() - 1;
        let info = json!({"name": "c", "version": "1"});
        let params = json!({"protocolVersion": revision, "capabilities": capabilities(dice), "clientInfo": info});
        self.send(client, "initialize", params, None);
        self.tell(client, "notifications/initialized", json!({}));
    }

    /// A request, a notification or an array of some client of the old era.
    pub fn speak(&mut self, dice: &mut Dice) {
        let Some(client) = self.some(dice) else { return };
        match dice.below(20) {
            0 => self.tell(client, "notifications/roots/list_changed", json!({})),
            1 => self.tell(client, "tools/call", json!({"name": "t0"})),
            2 | 3 => self.array(client, dice),
            4 => {
                let known = self.sent.keys().next_back().copied();
                self.send(client, "ping", json!({}), known.filter(|_| dice.chance(50)));
            }
            _ => {
                let (method, params) = self.request(dice);
                if self.clients[client].pipe && dice.chance(40) {
                    return self.send(client, method, modern(dice, params), None);
                }
                self.send(client, method, params, None);
            }
        }
    }

    /// A request of the new era, or another round of one.
    pub fn call(&mut self, dice: &mut Dice) {
        let caller = dice.below(self.callers.len());
        if !self.rounds.is_empty() && dice.chance(50) {
            let index = dice.below(self.rounds.len());
            let Round { caller, params } = self.rounds.swap_remove(index);
            return self.send_modern(caller, "tools/call", params);
        }
        let (method, params) = match dice.below(8) {
            0 => (
                "subscriptions/listen",
                json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": [self.known(dice, "uri")]}}),
            ),
            1 => ("server/discover", json!({})),
            _ => self.request(dice),
        };
        let params = modern(dice, params);
        self.send_modern(caller, method, params);
    }

    fn send_modern(&mut self, caller: usize, method: &str, params: Value) {
        let whose = self.callers[caller].clone();
        let Ok(session) = self.gateway.open_session(whose, Mode::Stateless, "", "test") else { return };
        self.sessions.push(Arc::downgrade(&session));
        let Some(stream) = session.open_stream() else { return };
        self.next += 1;
        let (id, listens) = (self.next, method == "subscriptions/listen");
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.note_sent(id, method, None);
        self.calls.insert(id, (caller, params));
        session.receive(&stream, envelope(&message));
        self.open.push(Open { stream, of: None, ids: vec![id], listens });
    }

    fn note_sent(&mut self, id: u64, method: &str, by: Option<usize>) {
        let fresh = Sent { times: 0, answers: 0, excused: false, method: method.to_owned(), by: Vec::new() };
        let sent = self.sent.entry(id).or_insert(fresh);
        sent.times += 1;
        sent.by.extend(by.map(|client| self.clients[client].number));
    }

    fn send(&mut self, client: usize, method: &str, params: Value, id: Option<u64>) {
        self.next += 1;
        let id = id.unwrap_or(self.next);
        let message = envelope(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let session = Arc::clone(&self.clients[client].session);
        if self.clients[client].pipe {
            if session.receive_on_general(&message, Carrier::default()).is_ok() {
                self.note_sent(id, method, Some(client));
            }
            return;
        }
        let Some(stream) = session.open_stream() else { return };
        self.note_sent(id, method, Some(client));
        session.receive(&stream, message);
        self.open.push(Open { stream, of: Some(client), ids: vec![id], listens: false });
    }

    fn array(&mut self, client: usize, dice: &mut Dice) {
        let mut messages = Vec::new();
        let mut ids = Vec::new();
        for _ in 0..=dice.below(4) {
            let (method, params) = self.request(dice);
            self.next += 1;
            ids.push((self.next, method));
            messages.push(envelope(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params})));
        }
        let session = Arc::clone(&self.clients[client].session);
        let batch = Batch::new(messages, Vec::new());
        if self.clients[client].pipe {
            if session.receive_batch_on_general(batch).is_ok() {
                ids.iter().for_each(|(id, method)| self.note_sent(*id, method, Some(client)));
            }
            return;
        }
        let Some(stream) = session.open_stream() else { return };
        ids.iter().for_each(|(id, method)| self.note_sent(*id, method, Some(client)));
        session.receive_batch(&stream, batch);
        let ids = ids.into_iter().map(|(id, _)| id).collect();
        self.open.push(Open { stream, of: Some(client), ids, listens: false });
    }

    fn tell(&mut self, client: usize, method: &str, params: Value) {
        self.post(client, &json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends what gets no answer.
    fn post(&mut self, client: usize, message: &Value) {
        let one = &self.clients[client];
        if one.pipe {
            // Whoever has closed its pipe cannot say anything any more.
            let _ = one.session.receive_on_general(&envelope(message), Carrier::default());
        } else if let Some(stream) = one.session.open_stream() {
            one.session.receive(&stream, envelope(message));
        }
    }

    /// Some client cancels some request of its own, which may just have been answered, or one that is none of its
    /// business.
    pub fn cancel(&mut self, dice: &mut Dice) {
        let Some(client) = self.some(dice) else { return };
        let Some(id) = self.some_unanswered(dice) else { return };
        let number = self.clients[client].number;
        let Some(sent) = self.sent.get_mut(&id) else { return };
        let own = sent.by.first().and_then(|by| self.clients.iter().position(|one| one.number == *by));
        let whose = match own.filter(|_| dice.chance(80)) {
            Some(own) => own,
            None => client,
        };
        sent.excused |= sent.by.contains(&self.clients[whose].number) || sent.by.contains(&number);
        let params = json!({"requestId": id, "reason": "a whim"});
        self.tell(whose, "notifications/cancelled", params);
    }

    fn some_unanswered(&self, dice: &mut Dice) -> Option<u64> {
        let open: Vec<u64> =
            self.sent.iter().filter(|(_, sent)| sent.answers < sent.times).map(|(id, _)| *id).collect();
        (!open.is_empty()).then(|| dice.pick(&open))
    }

    /// Some client answers what it was asked.
    pub fn answer(&mut self, dice: &mut Dice) {
        let asked: Vec<usize> =
            (0..self.clients.len()).filter(|client| !self.clients[*client].questions.is_empty()).collect();
        if asked.is_empty() {
            return;
        }
        let client = dice.pick(&asked);
        let (id, method) = self.clients[client].questions.pop().unwrap();
        let reply = match dice.below(4) {
            0 => json!({"jsonrpc": "2.0", "id": id, "error": {"code": -1, "message": "no"}}),
            _ => json!({"jsonrpc": "2.0", "id": id, "result": response(&method)}),
        };
        self.post(client, &reply);
        if dice.chance(10) {
            self.post(client, &reply);
        }
    }

    /// Somebody drops a stream before its end: a call of either era, or the general one, which may be opened again.
    pub fn drop_stream(&mut self, dice: &mut Dice) {
        if !self.open.is_empty() && dice.chance(60) {
            let open = self.open.swap_remove(dice.below(self.open.len()));
            return self.excuse(&open.ids);
        }
        let Some(client) = self.some(dice) else { return };
        if self.clients[client].pipe {
            return;
        }
        self.clients[client].general = None;
        if dice.chance(80) {
            let general = self.clients[client].session.open_general();
            self.clients[client].general = general;
        }
    }

    fn excuse(&mut self, ids: &[u64]) {
        for id in ids {
            if let Some(sent) = self.sent.get_mut(id) {
                sent.excused = true;
            }
        }
    }

    /// Some client ends its session, with everything in it.
    pub fn leave(&mut self, dice: &mut Dice) {
        if let Some(client) = self.some(dice) {
            self.close(client);
        }
    }

    fn close(&mut self, client: usize) {
        self.read();
        let gone = self.clients.swap_remove(client);
        for sent in self.sent.values_mut().filter(|sent| sent.by.contains(&gone.number)) {
            sent.excused = true;
        }
        gone.session.close();
        let moved = self.clients.len();
        self.open.retain(|open| open.of != Some(client));
        for open in self.open.iter_mut().filter(|open| open.of == Some(moved)) {
            open.of = Some(client);
        }
    }

    fn some(&self, dice: &mut Dice) -> Option<usize> {
        (!self.clients.is_empty()).then(|| dice.below(self.clients.len()))
    }

    /// Everybody reads what is there for them.
    pub fn read(&mut self) {
        let mut heard: Vec<(Option<usize>, Value)> = Vec::new();
        let take = |stream: &StreamReader, of: Option<usize>, heard: &mut Vec<(Option<usize>, Value)>| {
            while let Some(out) = stream.outbox().try_next() {
                if out.part {
                    continue;
                }
                match serde_json::from_slice(out.bytes()).unwrap() {
                    Value::Array(all) => heard.extend(all.into_iter().map(|one| (of, one))),
                    one => heard.push((of, one)),
                }
            }
        };
        for open in &self.open {
            take(&open.stream, open.of, &mut heard);
        }
        for (index, client) in self.clients.iter().enumerate() {
            if let Some(general) = &client.general {
                take(general, Some(index), &mut heard);
            }
        }
        heard.into_iter().for_each(|(of, message)| self.hear(of, &message));
        let sent = &self.sent;
        let answered = |id: &u64| sent.get(id).is_some_and(|one| one.answers >= one.times);
        self.open.retain(|open| open.listens || !open.ids.iter().all(answered));
    }

    fn hear(&mut self, of: Option<usize>, message: &Value) {
        match (message.get("method"), message.get("id")) {
            (Some(method), Some(id)) => match of {
                Some(client) => {
                    let method = method.as_str().unwrap_or_default().to_owned();
                    self.asked += 1;
                    self.clients[client].questions.push((id.clone(), method));
                }
                None => self.faults.push(format!("a request of the new era was asked {message}")),
            },
            (Some(_), None) => {}
            (None, _) => self.answered(message),
        }
    }

    fn answered(&mut self, message: &Value) {
        let id = message["id"].as_u64();
        let Some(sent) = id.and_then(|id| self.sent.get_mut(&id)) else {
            return self.faults.push(format!("an answer to nothing: {message}"));
        };
        sent.answers += 1;
        let state = &message["result"]["requestState"];
        if let (Some((caller, params)), true) = (id.and_then(|id| self.calls.get(&id)), state.is_string()) {
            let asked = message["result"]["inputRequests"].as_object().cloned().unwrap_or_default();
            let responses: serde_json::Map<String, Value> = asked
                .iter()
                .map(|(key, request)| (key.clone(), response(request["method"].as_str().unwrap_or_default())))
                .collect();
            let mut params = params.clone();
            params["requestState"] = state.clone();
            params["inputResponses"] = Value::Object(responses);
            self.rounds_begun += 1;
            self.rounds.push(Round { caller: *caller, params });
        }
    }

    /// How many requests still wait for their answer, listen requests aside.
    pub fn unanswered(&self) -> usize {
        let waits = |sent: &&Sent| !sent.excused && sent.method != "subscriptions/listen" && sent.answers < sent.times;
        self.sent.values().filter(waits).count()
    }

    /// How many requests their sessions think are in flight.
    pub fn in_flight(&self) -> usize {
        self.clients.iter().map(|client| client.session.in_flight()).sum()
    }

    /// Everybody leaves.
    pub fn leave_all(&mut self) {
        self.read();
        for client in std::mem::take(&mut self.clients) {
            client.session.close();
        }
        self.open.clear();
    }

    /// What is wrong with what the clients got.
    pub fn verdict(&self) -> Vec<String> {
        let mut faults = self.faults.clone();
        for (id, sent) in &self.sent {
            let may_lack = sent.excused || sent.method == "subscriptions/listen";
            if sent.answers > sent.times || (sent.answers < sent.times && !may_lack) {
                faults.push(format!("request {id}: {sent:?}"));
            }
        }
        faults
    }

    /// A request of some method, mostly for something that there is.
    fn request(&self, dice: &mut Dice) -> (&'static str, Value) {
        match dice.below(24) {
            0 => ("tools/list", json!({})),
            1 => ("resources/list", json!({})),
            2 | 3 => ("resources/read", json!({"uri": self.known(dice, "uri")})),
            4 | 5 => ("resources/subscribe", json!({"uri": self.known(dice, "uri")})),
            6 => ("resources/unsubscribe", json!({"uri": self.known(dice, "uri")})),
            7 => ("prompts/get", json!({"name": self.known(dice, "prompt")})),
            8 => ("logging/setLevel", json!({"level": "info"})),
            9 => ("ping", json!({})),
            10 => ("no/such/method", json!({})),
            _ => {
                let mut params = json!({"name": self.known(dice, "tool"), "arguments": {}});
                if dice.chance(40) {
                    params["_meta"] = json!({"progressToken": dice.below(1_000_000)});
                }
                ("tools/call", params)
            }
        }
    }

    /// The name of something in the catalog, seldom of nothing.
    fn known(&self, dice: &mut Dice, kind: &str) -> String {
        let catalog = self.gateway.catalog.snapshot();
        let backends = ["b0", "b1", "b2", "b3"];
        let names: Vec<String> = match kind {
            "tool" => (0..4).flat_map(|number| plain_and_prefixed(&backends, &format!("t{number}"), "__")).collect(),
            "prompt" => plain_and_prefixed(&backends, "p", "__"),
            _ => plain_and_prefixed(&backends, RESOURCE, "+"),
        };
        let there = |name: &&String| match kind {
            "tool" => catalog.tool(name).is_some(),
            "prompt" => catalog.prompt(name).is_some(),
            _ => catalog.resource(name).is_some(),
        };
        let known: Vec<&String> = names.iter().filter(there).collect();
        if known.is_empty() || dice.chance(4) {
            names[dice.below(names.len())].clone()
        } else {
            dice.pick(&known).clone()
        }
    }
}

fn plain_and_prefixed(backends: &[&str], name: &str, mark: &str) -> Vec<String> {
    let prefixed = backends.iter().map(|backend| format!("{backend}{mark}{name}"));
    std::iter::once(name.to_owned()).chain(prefixed).collect()
}

fn modern(dice: &mut Dice, mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities(dice);
    params
}

fn capabilities(dice: &mut Dice) -> Value {
    match dice.below(3) {
        0 => json!({"elicitation": {"form": {}}, "sampling": {}, "roots": {}}),
        1 => json!({"roots": {}}),
        _ => json!({}),
    }
}

fn response(method: &str) -> Value {
    match method {
        "roots/list" => json!({"roots": []}),
        "sampling/createMessage" => {
            json!({"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"})
        }
        "elicitation/create" => json!({"action": "accept", "content": {}}),
        _ => json!({}),
    }
}

fn envelope(message: &Value) -> Envelope {
    Envelope::parse(Bytes::from(message.to_string())).unwrap()
}
