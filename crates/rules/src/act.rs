//! Executes actions, and continues them once their hold is resolved.

use crate::action::{Action, Cache, FailKind, InjectedFault, Mock, RateLimit, Spread, Webhook};
use crate::damage::damage;
use crate::facts::{MessageView, Root};
use crate::limits;
use crate::live::mixed;
use crate::outside::{CacheAsk, InTurn, LimitAsk, LimitDecision, Slot, Turn, cached_text, input_text};
use crate::patch;
use crate::phases::Phases;
use crate::rule::Rule;
use crate::template::{Filling, Hole, JsonTemplate, Template};
use crate::walk::{Walk, WalkStep};
use crate::webhook::{self, WebhookDecision};
use bytes::Bytes;
use signalbox_engine::bridge;
use signalbox_engine::chain::{Effect, HoldAnswer, HoldQuestion, Verdict, edited};
use signalbox_engine::fault::{Fault, FaultKind};
use signalbox_engine::standing::SubjectToken;
use signalbox_wire::{Envelope, Limits, Revision, codes, json, method, scan};
use std::sync::Arc;
use std::time::Duration;

impl<'a> Walk<'a> {
    pub fn act(&mut self, rule: &'a Rule, action: &'a Action, number: u8, view: &MessageView<'_>) -> WalkStep {
        let slot = || Slot { rule: Arc::clone(&rule.id), action: number };
        match action {
            Action::Allow => {
                self.note("allow", "no further rules are checked");
                WalkStep::Stop
            }
            Action::Block { message, code } => self.block(rule, message, *code, view),
            Action::Set(_) | Action::Remove(_) | Action::Replace(..) => self.change(rule, action, view),
            Action::Error { code, message, data } => {
                let message = self.text(rule, message, view);
                let data =
                    data.as_ref().and_then(|data| self.fill_for_record(rule, view, |filling| data.render(filling)));
                self.note("error", format!("{code} {message}"));
                WalkStep::End(Verdict::Error(error_object(*code, &message, data.as_deref())))
            }
            Action::Delay { least, most } => self.delay(&slot(), *least, *most),
            Action::Fork { backend } => {
                self.note("fork", format!("a copy goes to {backend}"));
                self.effects.push(Effect::Fork { backend: Arc::clone(backend), message: view.message.clone() });
                WalkStep::Next
            }
            Action::Log { level, text } => {
                let text = one_line(self.text(rule, text, view));
                self.note("log", format!("logged: {text}"));
                self.effects.push(Effect::Log { level: *level, text });
                WalkStep::Next
            }
            Action::Webhook(hook) => self.webhook(rule, hook, view),
            Action::Hold { reason, within, .. } => {
                let reason = one_line(self.text(rule, reason, view));
                self.note("hold", &reason);
                WalkStep::Wait(HoldQuestion::Person { reason: reason.into(), within: *within })
            }
            Action::Mock(mock, _) => self.mock(rule, mock, &slot(), view),
            Action::Fault(failing) => self.fail(rule, failing, &slot(), view),
            Action::RateLimit(limit) => self.rate_limit(rule, limit, &slot(), view),
            Action::Cache(cache) => self.cache(rule, cache, &slot(), view),
            Action::Count { name } => {
                self.note("count", "");
                self.effects.push(Effect::Count { names: [Arc::clone(name)].into() });
                WalkStep::Next
            }
        }
    }

    /// Renders a text of the rule. All of them are recorded, also those that the caller is told.
    fn text(&mut self, rule: &Rule, template: &Template, view: &MessageView<'_>) -> String {
        let render = |filling: &Filling<'_, '_>| template.render(filling, limits::TEXT * 4);
        if !template.holes().any(|hole| matches!(hole, Hole::Value(..))) {
            return self.fill(rule, view, render);
        }
        self.note_quote();
        self.fill_for_record(rule, view, render)
    }

    fn refuse(&mut self, rule: &Rule, kind: FaultKind, message: String) -> WalkStep {
        self.note("refuse", &message);
        WalkStep::End(Verdict::Refuse(Fault::new(kind, message).with_str("rule", &rule.id)))
    }

    fn block(&mut self, rule: &Rule, message: &Template, code: Option<i64>, view: &MessageView<'_>) -> WalkStep {
        let message = self.text(rule, message, view);
        let Some(code) = code else { return self.refuse(rule, FaultKind::Refused, message) };
        self.note("refuse", &message);
        let data = format!("{{\"reason\":\"refused\",\"rule\":{}}}", json::quote(&rule.id));
        WalkStep::End(Verdict::Error(error_object(code, &message, Some(data.as_bytes()))))
    }

    fn change(&mut self, rule: &Rule, action: &Action, view: &MessageView<'_>) -> WalkStep {
        let here = if Phases::RESULTS.has(view.facts.phase) { Root::Result } else { Root::Params };
        let mut bytes = view.message.bytes().clone();
        let mut done = Vec::new();
        let mut left = Vec::new();
        match action {
            Action::Set(list) => {
                for (target, value) in list.iter().filter(|(target, _)| target.root == here) {
                    let value = self.fill(rule, view, |filling| value.render(filling));
                    match value.and_then(|value| patch::set(&bytes, here, &target.pointer, &value)) {
                        Some(changed) => {
                            bytes = changed;
                            done.push(format!("set {target}"));
                        }
                        None => left.push(format!("{target} cannot be set")),
                    }
                }
            }
            Action::Remove(list) => {
                for target in list.iter().filter(|target| target.root == here) {
                    if let Some(changed) = patch::remove(&bytes, here, &target.pointer) {
                        bytes = changed;
                        done.push(format!("removed {target}"));
                    }
                }
            }
            Action::Replace(_, value) => match self.fill(rule, view, |filling| value.render(filling)) {
                Some(value) => {
                    let value = adapt_result(value.into(), here, view);
                    bytes = patch::replace(view.message, here, &value);
                    done.push(format!("replaced the {}", here.word()));
                }
                None => left.push(format!("the {} would become too large", here.word())),
            },
            _ => {}
        }
        self.finish_change(view, bytes, done, left)
    }

    fn finish_change(
        &mut self,
        view: &MessageView<'_>,
        bytes: Bytes,
        mut done: Vec<String>,
        left: Vec<String>,
    ) -> WalkStep {
        let word = if done.is_empty() { "pass" } else { "modify" };
        done.extend(left);
        self.note(word, done.join("; "));
        if bytes == *view.message.bytes() {
            return WalkStep::Next;
        }
        match Envelope::parse(bytes) {
            Ok(message) => WalkStep::Change(message),
            Err(error) => {
                self.note("pass", format!("the changed message is not valid: {error}"));
                WalkStep::Next
            }
        }
    }

    fn draw(&mut self, slot: &Slot, seed: Option<u64>) -> u64 {
        let draw = self.outside.draw(slot, seed);
        self.input("random", draw.to_string());
        draw
    }

    fn turn(&mut self, turn: Option<Turn>) {
        if let Some(turn) = turn {
            self.input("turn", turn.text());
        }
    }

    fn delay(&mut self, slot: &Slot, least: Duration, most: Duration) -> WalkStep {
        let mut time = least;
        if most > least {
            let share = unit(self.draw(slot, None));
            time += (most - least).mul_f64(share);
        }
        self.note("delay", format!("for {time:?}"));
        WalkStep::Wait(HoldQuestion::Pause(time))
    }

    fn webhook(&mut self, rule: &Rule, hook: &Webhook, view: &MessageView<'_>) -> WalkStep {
        let body = webhook::body(rule, view);
        let (url, within) = (Arc::clone(&hook.url), hook.timeout);
        if hook.wait {
            self.note("hold", format!("asks {}", hook.shown));
            return WalkStep::Wait(HoldQuestion::Webhook { url, body, within });
        }
        self.note("notify", format!("tells {}", hook.shown));
        self.effects.push(Effect::Notify { url, body, within });
        WalkStep::Next
    }

    fn mock(&mut self, rule: &Rule, mock: &Mock, slot: &Slot, view: &MessageView<'_>) -> WalkStep {
        let chosen = |list: &'_ [JsonTemplate], number: u64| -> usize {
            usize::try_from(number % (list.len() as u64).max(1)).unwrap_or(0)
        };
        let template = match mock {
            Mock::Always(template) => Some(template),
            Mock::InTurn(list) => {
                let InTurn { answer: position, turn } = self.outside.position(slot, view.facts.now);
                self.input("position", position.to_string());
                self.turn(turn);
                list.get(chosen(list, position))
            }
            Mock::AtRandom(list, seed) => list.get(chosen(list, self.draw(slot, *seed))),
        };
        match template.and_then(|template| self.fill(rule, view, |filling| template.render(filling))) {
            Some(result) => {
                self.note("reply", "with a mock result");
                WalkStep::End(Verdict::Reply(result.into()))
            }
            None => self.refuse(rule, FaultKind::Internal, "the mock result is too large".to_owned()),
        }
    }

    fn fail(&mut self, rule: &Rule, failing: &InjectedFault, slot: &Slot, view: &MessageView<'_>) -> WalkStep {
        let spoils = matches!(failing.kind, FailKind::Truncate | FailKind::Garble);
        let draws = spoils || failing.probability < 1.0 || failing.spread != Spread::Fixed;
        let draw = if draws { self.draw(slot, failing.seed) } else { 0 };
        if unit(draw) >= failing.probability {
            self.note("pass", "no failure this time");
            return WalkStep::Next;
        }
        let made_up = |what: &str| format!("rule `{}` injects a failure: {what}", rule.id);
        match failing.kind {
            FailKind::Timeout | FailKind::Slow => {
                let time = spread(failing, draw);
                self.note("delay", format!("for {time:?}"));
                WalkStep::Wait(HoldQuestion::Pause(time))
            }
            FailKind::Refused => self.refuse(rule, FaultKind::BackendDown, made_up("the connection was refused")),
            FailKind::Unreachable => self.refuse(rule, FaultKind::BackendDown, made_up("the host is unreachable")),
            FailKind::Dns => self.refuse(rule, FaultKind::BackendDown, made_up("the name of the host was not found")),
            FailKind::Tls => self.refuse(rule, FaultKind::BackendDown, made_up("the TLS handshake failed")),
            FailKind::Reset => self.refuse(rule, FaultKind::BackendDied, made_up("the connection broke")),
            FailKind::Crash => self.refuse(rule, FaultKind::BackendDied, made_up("the process ended with a crash")),
            FailKind::InvalidJson => {
                self.refuse(rule, FaultKind::BackendGarbage, made_up("the answer is not valid JSON"))
            }
            FailKind::Error => {
                let message = made_up("internal error");
                self.note("error", &message);
                WalkStep::End(Verdict::Error(error_object(codes::INTERNAL_ERROR, &message, None)))
            }
            FailKind::Truncate | FailKind::Garble => match damage(view.message, failing.kind, draw) {
                Some(bytes) => {
                    self.finish_change(view, bytes, vec!["corrupted the texts of the result".to_owned()], vec![])
                }
                None => WalkStep::Next,
            },
        }
    }

    fn rate_limit(&mut self, rule: &Rule, limit: &RateLimit, slot: &Slot, view: &MessageView<'_>) -> WalkStep {
        // All rounds of a call are one call, which each limit counts in the first round that comes to it.
        let call = view.facts.call;
        if view.facts.round > 1 && call.is_none_or(|call| self.outside.is_counted(slot, call)) {
            return WalkStep::Next;
        }
        let key = self.fill(rule, view, |filling| limit.key.render_key(filling, limits::KEY));
        let now = view.facts.now;
        let caller = view.facts.principal;
        let ask = LimitAsk { slot, caller, key: &key, limit: limit.limit, per: limit.per, now, call };
        let InTurn { answer: limited, turn } = self.outside.limit(&ask);
        self.input("limiter", limited.text());
        self.turn(turn);
        let LimitDecision::Over { wait } = limited else { return WalkStep::Next };
        let seconds = wait.as_secs_f64().ceil().max(1.0);
        let message = format!("more than {} in {:?}; try again in {seconds} s", limit.limit, limit.per);
        self.note("refuse", &message);
        let fault = Fault::new(FaultKind::Overloaded, message).with_str("rule", &rule.id);
        WalkStep::End(Verdict::Refuse(fault.with_raw("retryAfterMs", wait.as_millis().to_string())))
    }

    fn cache(&mut self, rule: &Rule, cache: &Cache, slot: &Slot, view: &MessageView<'_>) -> WalkStep {
        // A truncated key could collide with others.
        let key = self.fill(rule, view, |filling| cache.key.render_key(filling, limits::KEY));
        if key.len() > limits::KEY {
            self.note("pass", "the key is too long to cache");
            return WalkStep::Next;
        }
        let (whose, token) = match cache.shared {
            true => ("", ""),
            // A server's answer to one token is not for another token of the same principal.
            false => (view.facts.principal, view.facts.token.map(SubjectToken::expose).unwrap_or_default()),
        };
        // What a list shows depends on the rights of the caller, which change while it is cached.
        let lookup = view.facts.audience.filter(|_| view.method().is_some_and(shows_entries));
        let audience = lookup.map(|lookup| lookup.audience()).unwrap_or_default();
        // Pages have the same tools and different data, also where callers share a cache.
        let page = view.facts.page.unwrap_or_default();
        let key = format!("{whose}\0{token}\0{page}\0{}\0{key}", audience.0);
        let (exchange, now) = (view.facts.exchange, view.facts.now);
        let ask = CacheAsk { slot, key: &key, exchange, ttl: cache.ttl, max_entries: cache.max_entries, now };
        let InTurn { answer: found, turn } = self.outside.cached(&ask);
        self.input("cache", cached_text(found.as_ref()));
        self.turn(turn);
        match found {
            Some(result) => {
                self.note("reply", "with the cached answer");
                WalkStep::End(Verdict::Reply(result))
            }
            None => WalkStep::Next,
        }
    }

    /// Continues an action whose hold was resolved.
    pub fn resume_action(
        &mut self,
        rule: &'a Rule,
        action: &'a Action,
        answer: &HoldAnswer,
        view: &MessageView<'_>,
    ) -> WalkStep {
        match (answer, action) {
            (HoldAnswer::Webhook { status, body }, Action::Webhook(hook)) => {
                self.input("webhook", format!("{status} {}", input_text(body)));
                match webhook::read(*status, body, view.message) {
                    Ok(said) => self.apply_decision(rule, &hook.shown, said),
                    Err(error) => self.hook_failed(rule, hook, &error.to_string()),
                }
            }
            (HoldAnswer::Failed(error), Action::Webhook(hook)) => {
                self.input("webhook", format!("failed {error}"));
                self.hook_failed(rule, hook, error)
            }
            (HoldAnswer::Expired, Action::Webhook(hook)) => {
                self.input("webhook", "expired".to_owned());
                self.hook_failed(rule, hook, "it did not answer in time")
            }
            (HoldAnswer::Failed(why), Action::Hold { .. }) => {
                // Never release: a caller must not evade approval by filling the queue.
                self.input("person", format!("failed {why}"));
                self.refuse(rule, FaultKind::Overloaded, format!("rule `{}` holds this for a person: {why}", rule.id))
            }
            (HoldAnswer::GoOn { by: None }, Action::Fault(failing)) if failing.kind == FailKind::Timeout => {
                let message = format!("rule `{}` injects a failure: no answer in {:?}", rule.id, failing.after);
                self.refuse(rule, FaultKind::TimedOut, message)
            }
            (HoldAnswer::Expired | HoldAnswer::Webhook { .. }, Action::Hold { within, release, .. }) => {
                self.input("person", "expired".to_owned());
                if *release {
                    self.note("released", format!("no answer in {within:?}"));
                    return WalkStep::Next;
                }
                let message = format!("rule `{}` held this, and no answer came in {within:?}", rule.id);
                self.refuse(rule, FaultKind::HoldExpired, message)
            }
            _ => self.person(rule, answer, view),
        }
    }

    /// Applies a user's decision. A user may end any hold.
    fn person(&mut self, rule: &Rule, answer: &HoldAnswer, view: &MessageView<'_>) -> WalkStep {
        let name = |by: &Option<String>| by.clone().unwrap_or_else(|| "a person".to_owned());
        match answer {
            HoldAnswer::GoOn { by } => {
                if by.is_some() {
                    self.input("person", format!("released by {}", name(by)));
                    self.note("released", format!("by {}", name(by)));
                } else {
                    self.note("released", "the wait is over");
                }
                WalkStep::Next
            }
            HoldAnswer::Edited { by, message } => {
                self.input("person", format!("edited by {}", name(by)));
                self.input("message", input_text(message));
                match edited(view.message, message.clone(), &Limits::default()) {
                    Ok(message) => {
                        self.note("modify", format!("edited by {}", name(by)));
                        WalkStep::Change(message)
                    }
                    Err(error) => {
                        self.refuse(rule, FaultKind::Internal, format!("the edited message cannot be used: {error}"))
                    }
                }
            }
            HoldAnswer::Result { by, result } => {
                self.input("person", format!("answered by {}", name(by)));
                self.input("result", input_text(result));
                if result.starts_with(b"{") && scan(result, &Limits::default()).is_ok() {
                    self.note("reply", format!("answered by {}", name(by)));
                    return WalkStep::End(Verdict::Reply(result.clone()));
                }
                self.refuse(rule, FaultKind::Internal, "the given result is not a JSON object".to_owned())
            }
            HoldAnswer::Refused { by, reason } => {
                self.input("person", format!("refused by {}", name(by)));
                self.input("reason", reason.clone());
                self.refuse(rule, FaultKind::Refused, format!("refused by {}: {reason}", name(by)))
            }
            HoldAnswer::Overloaded(why) => {
                // Never release, even with `on_failure`: a caller must not evade a webhook by overloading it.
                self.input("webhook", format!("overloaded {why}"));
                self.refuse(rule, FaultKind::Overloaded, format!("rule `{}` asks a webhook about this: {why}", rule.id))
            }
            HoldAnswer::Expired | HoldAnswer::Failed(_) | HoldAnswer::Webhook { .. } => WalkStep::Next,
        }
    }

    fn apply_decision(&mut self, rule: &Rule, url: &str, said: WebhookDecision) -> WalkStep {
        match said {
            WebhookDecision::Pass => {
                self.note("released", format!("{url} let it pass"));
                WalkStep::Next
            }
            WebhookDecision::Modify(message) => {
                self.note("modify", format!("by {url}"));
                WalkStep::Change(message)
            }
            WebhookDecision::Reply(result) => {
                self.note("reply", format!("by {url}"));
                WalkStep::End(Verdict::Reply(result))
            }
            WebhookDecision::Error(error) => {
                self.note("error", format!("by {url}"));
                WalkStep::End(Verdict::Error(error))
            }
            WebhookDecision::Refuse(reason) => {
                // It was sent the message, so its reason may quote arguments.
                self.note_quote();
                self.refuse(rule, FaultKind::Refused, reason)
            }
        }
    }

    fn hook_failed(&mut self, rule: &Rule, hook: &Webhook, error: &str) -> WalkStep {
        if hook.block_on_failure {
            // Clients must not learn the webhook's address.
            self.note("refuse", format!("{}: {error}", hook.shown));
            let message = format!("the webhook of rule `{}` gave no usable answer", rule.id);
            return WalkStep::End(Verdict::Refuse(Fault::new(FaultKind::Refused, message).with_str("rule", &rule.id)));
        }
        self.note("released", format!("{}: {error}; continuing without it", hook.shown));
        WalkStep::Next
    }
}

/// Adapts a replacement result to the client's revision.
fn adapt_result(value: Bytes, root: Root, view: &MessageView<'_>) -> Bytes {
    let new = view.facts.revision.and_then(Revision::parse).is_some_and(Revision::result_type);
    match view.method().filter(|_| new && root == Root::Result) {
        Some(method) => bridge::complete_result(method, &value),
        None => value,
    }
}

/// Replaces control characters, so that a message cannot inject any into logs or terminals.
fn one_line(text: String) -> String {
    if text.contains(char::is_control) { text.replace(char::is_control, " ") } else { text }
}

/// Returns the duration of a slow call for a random draw.
fn spread(failing: &InjectedFault, draw: u64) -> Duration {
    // The draw itself already decided if the call fails.
    let share = unit(mixed(draw, 1));
    let times = match failing.spread {
        Spread::Fixed => return failing.after,
        Spread::Uniform => 2.0 * share,
        Spread::Exponential => -(1.0 - share).ln(),
    };
    failing.after.mul_f64(times).min(limits::WAIT)
}

/// Maps a draw to the range from 0 to less than 1.
fn unit(draw: u64) -> f64 {
    (draw >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns `true` if an answer to this method names entries that its caller may see.
fn shows_entries(method: &str) -> bool {
    method.ends_with("/list")
        || [method::COMPLETION_COMPLETE, method::INITIALIZE, method::SERVER_DISCOVER].contains(&method)
}

fn error_object(code: i64, message: &str, data: Option<&[u8]>) -> Bytes {
    let mut out = format!("{{\"code\":{code},\"message\":{}", json::quote(message)).into_bytes();
    if let Some(data) = data {
        out.extend_from_slice(b",\"data\":");
        out.extend_from_slice(data);
    }
    out.push(b'}');
    out.into()
}
