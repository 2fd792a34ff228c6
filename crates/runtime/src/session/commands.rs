//! Carries out the commands of a session's machine after the session has been unlocked.

use super::{Session, hold};
use crate::backend::Backend;
use crate::gateway::Gateway;
use crate::origin::Attribution;
use bytes::Bytes;
use signalbox_engine::command::{Listen, Watch};
use signalbox_engine::front::NeededLists;
use signalbox_engine::local_answer::LocalAnswer;
use signalbox_engine::read_cache::CacheTerms;
use signalbox_engine::{AuthorizedCall, Carrier, ClientProfile, Command, Event, ExchangeId};
use signalbox_wire::{Edits, Envelope, Era, printable};
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of characters of a client's name in the log.
const MAX_SHOWN: usize = 100;

impl Session {
    pub(super) fn perform(self: &Arc<Self>, command: Command) {
        match command {
            Command::Forward { exchange, backend, call } => match self.gateway.backends().get(&backend) {
                Some(_) if self.gateway.answer_read(self, exchange, &backend, &call) => {}
                Some(backend) => backend.accept(self, exchange, call),
                None => self.gateway.forward_late(self, exchange, &backend, call),
            },
            Command::Watch(watch) => self.watch(watch),
            Command::Tell { draft, except } => {
                let party = Attribution::of(self, None);
                let peers = self.gateway.peers_of(self.key).into_iter();
                for peer in peers.filter(|peer| !except.contains(&peer.backend_name())) {
                    peer.send_one_way(draft.clone(), &party);
                }
            }
            Command::Respond { peer, exchange, draft } => {
                if let Some(peer) = self.gateway.peers_of(self.key).into_iter().find(|one| one.id == peer) {
                    peer.send_one_way(draft, &Attribution::of(self, exchange));
                }
            }
            Command::Cancel { exchange, backend, reason } => {
                for backend in self.gateway.backends().named(&backend) {
                    backend.cancel(self, exchange, reason.as_deref());
                }
            }
            Command::KeepRead { backend, uri, result, terms, asked, era } => {
                // A legacy backend may show each session something different, whatever it says about caching.
                let target = self.gateway.backend(&backend);
                let may_keep = |target: &Arc<Backend>| target.target(era) == Era::Modern && !target.is_per_caller();
                if let Some(target) = target.filter(may_keep) {
                    let terms = CacheTerms { public: terms.public && !target.is_per_user(), ..terms };
                    self.gateway.reads.keep(&self.principal, &backend, &uri, &result, terms, asked);
                }
            }
            Command::SendAndDiscard { backend, call } => {
                if let Some(backend) = self.gateway.backend(&backend) {
                    backend.send_and_discard(self, call);
                }
            }
            Command::Fork { exchange, backend, call } => self.fork(&backend, exchange, call),
            Command::TaskHome { state, backend } => {
                if !self.gateway.tasks.note(&self.principal, &state, backend) {
                    self.gateway.counters.dropped("task_forgotten");
                }
            }
            Command::Consult { exchange, question, held } => {
                tokio::spawn(hold::consult(Arc::clone(self), exchange, question, held));
            }
            Command::Withdraw { exchange } => self.gateway.holds.withdraw(self.key, exchange),
            Command::AwaitLists { exchange } => self.await_lists(exchange),
            Command::Wake { exchange, after, round } => self.wake_later(exchange, after, round),
            Command::GiveUp { park } => {
                if let Some(call) = self.gateway.parks.take(park) {
                    call.abandon();
                }
            }
            Command::LogLevel { except, .. } => self.level_changed(&except),
            Command::Operational => self.operational(),
            Command::Listen(Listen::Open { exchange, follow }) => {
                self.gateway.sessions.follow(self);
                self.gateway.listen(self, exchange, &follow);
            }
            Command::Listen(Listen::Close { exchange }) => self.gateway.unlisten(self, exchange),
            Command::Dropped(reason) => self.gateway.counters.dropped(reason),
            Command::Refused(limit) => self.gateway.counters.refused(limit),
            // These were carried out under the session's lock.
            Command::Send(_) | Command::End { .. } | Command::Fact(_) | Command::Effects(_) => {}
        }
    }

    fn fork(self: &Arc<Self>, backend: &str, exchange: Option<ExchangeId>, call: AuthorizedCall) {
        let sent = self.gateway.backend(backend).is_some_and(|backend| backend.fork(self, exchange, call));
        if !sent {
            self.gateway.counters.dropped("fork");
        }
    }

    /// Wakes an exchange after a delay. The timer of a round of questions is long, so it is cancelled when the call
    /// ends.
    fn wake_later(self: &Arc<Self>, exchange: ExchangeId, after: Duration, round: Option<u32>) {
        let session = Arc::downgrade(self);
        let timer = tokio::spawn(async move {
            tokio::time::sleep(after).await;
            if let Some(session) = session.upgrade() {
                session.handle(Event::Wake { exchange, round });
            }
        });
        if round.is_some() {
            self.lock().rounds.set(exchange, timer.abort_handle());
        }
    }

    fn watch(self: &Arc<Self>, watch: Watch) {
        let Some(backend) = self.gateway.backend(&watch.backend) else {
            // The backend was removed from the configuration after routing.
            let fault = Gateway::no_backend(&watch.backend);
            return self.handle(Event::Failed { exchange: watch.exchange, fault });
        };
        let tell = match backend.watch(self, &watch.uri, watch.on) {
            Ok(tell) => tell,
            Err(fault) => return self.handle(Event::Failed { exchange: watch.exchange, fault }),
        };
        if backend.knows_era() {
            return self.carry_watch(&backend, watch, tell);
        }
        let session = Arc::clone(self);
        tokio::spawn(async move {
            backend.learn_era(&backend.user_of(&session, watch.exchange)).await;
            session.carry_watch(&backend, watch, tell);
        });
    }

    fn carry_watch(self: &Arc<Self>, backend: &Arc<Backend>, watch: Watch, tell: bool) {
        if backend.target(Era::Legacy) == Era::Modern {
            backend.watch_by_listening(self, watch.exchange);
        } else if tell {
            backend.dispatch(self, watch.exchange, watch.call);
        } else if let Ok(message) = Envelope::parse(Bytes::from_static(br#"{"jsonrpc":"2.0","id":0,"result":{}}"#)) {
            // Another session still watches the resource on this connection, so the gateway answers itself.
            let (exchange, source, edits) = (watch.exchange, LocalAnswer::SharedSubscription, Edits::new());
            self.handle(Event::Kept { exchange, source, message, edits });
        }
    }

    fn await_lists(self: &Arc<Self>, exchange: ExchangeId) {
        let (client, caller, selector) = {
            let inner = self.lock();
            let Some(waiting) = inner.machine.exchange(exchange) else { return };
            let client = waiting.client.clone().or_else(|| self.client());
            (client, waiting.caller.clone(), inner.machine.selector(exchange))
        };
        if self.lock().machine.awaited(exchange) == Some(NeededLists::Listen) {
            // The client will be notified of changes, so lists that it requests meanwhile need not wait for slow
            // backends.
            self.gateway.sessions.follow(self);
        }
        let session = Arc::clone(self);
        tokio::spawn(async move {
            let gateway = Arc::clone(&session.gateway);
            gateway.wait_for_lists(&session, exchange, client.as_deref(), &selector).await;
            // The sender of this request may see less than the opener of the session.
            let carrier = Carrier { caller: Some(&caller), ..Carrier::default() };
            session.handle_at(Event::ListsReady { exchange }, carrier, crate::clock::now());
        });
    }

    /// Returns true if the client of a request that waits for lists will be notified when they change.
    pub(crate) fn is_notified_of_changes(&self, exchange: ExchangeId, client: Option<&ClientProfile>) -> bool {
        let (awaited, era) = {
            let inner = self.lock();
            let Some(waiting) = inner.machine.exchange(exchange) else { return false };
            (inner.machine.awaited(exchange), waiting.era)
        };
        match (awaited, era) {
            (Some(NeededLists::Listen), _) => true,
            (Some(NeededLists::List(_)), Era::Legacy) => self.lock().machine.hears_changes(),
            // A modern request and the client's listen request may be two sessions.
            (Some(NeededLists::List(kind)), Era::Modern) => client.is_some_and(|client| {
                let mut own = self.gateway.sessions.all().into_iter().filter(|one| one.principal == self.principal);
                own.any(|one| one.lock().machine.listens_for(kind, client))
            }),
            (Some(NeededLists::Entry) | None, _) => false,
        }
    }

    fn level_changed(&self, except: &[Arc<str>]) {
        if let Some(level) = self.log_level() {
            if let Some(client) = self.client() {
                self.gateway.store_session(self, &client, Some(level));
            }
            for backend in self.gateway.backends().iter() {
                backend.set_level(self, level, !except.contains(&backend.name));
            }
        }
    }

    fn operational(self: &Arc<Self>) {
        let client = self.client();
        let title = client.as_ref().map(|client| printable::beginning(&client.title(), MAX_SHOWN)).unwrap_or_default();
        tracing::info!(
            session = %self.key,
            principal = %self.principal,
            client = %title,
            revision = client.as_ref().map(|client| client.revision.as_str()),
            "session open"
        );
    }
}
