//! State of an exchange during a backtest.

use super::event::Event;
use super::image::Image;
use super::progress::Progress;
use signalbox_engine::chain::Phase;
use signalbox_wire::method;
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of backends whose messages are stored for an exchange: the one that answers and those that get
/// copies.
const MAX_BACKENDS: usize = 8;

/// Effect on the backend's answer if the request is forwarded as evaluated now.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Forward {
    /// The backend gets the recorded request and answers as recorded.
    AsRecorded,
    /// The backend gets a different request.
    Otherwise,
    /// The backend gets a request that it did not get in the recording.
    Unanswered,
    /// Nothing reaches a backend.
    Stopped,
    /// The forwarded request is unknown.
    Unknown,
}

/// State of an exchange, or of a message outside of any exchange.
#[derive(Default, Debug)]
pub(super) struct OpenExchange {
    /// `None` for a message outside of any exchange.
    pub exchange: Option<u64>,
    pub session: Option<u64>,
    /// Client number, if there is no session.
    pub client: Option<u64>,
    pub principal: Arc<str>,
    pub method: Option<Arc<str>>,
    pub subject: Option<Arc<str>>,
    /// Backend that the request was routed to.
    pub backend: Option<Arc<str>>,
    pub round: Option<u32>,
    pub request: Option<Image>,
    /// Request as each backend received it.
    sent_on: Vec<(Arc<str>, Image)>,
    /// Answer as each backend gave it.
    answers: Vec<(Arc<str>, Image)>,
    /// Answer as the client received it.
    pub answer: Option<Image>,
    /// Latest message within the exchange whose decisions may follow.
    pub midway: Option<(Phase, Image, u64)>,
    /// Set once the request has become an event. `answered` is the same for the answer.
    pub asked: bool,
    pub answered: bool,
    /// Set if the gateway ended the exchange before a backend could answer.
    pub ended_early: bool,
    /// Set if a user resolved the exchange at a breakpoint.
    pub at_breakpoint: bool,
    pub finished: bool,
    pub progress: Option<Progress>,
    pub forward: Option<Forward>,
    /// Queued events with their arrival order.
    pub queue: VecDeque<(u64, Event)>,
    /// Number of queued events that used shared state.
    pub turned: usize,
}

impl OpenExchange {
    /// Returns the phase of the request, or `None` for methods that no rule sees.
    pub fn asking(&self) -> Option<Phase> {
        match self.method.as_deref()? {
            method::PING => None,
            method::INITIALIZE | method::SERVER_DISCOVER | method::LOGGING_SET_LEVEL | method::SUBSCRIPTIONS_LISTEN => {
                Some(Phase::ToGateway)
            }
            _ => Some(Phase::Request),
        }
    }

    /// Returns the phase of the answer.
    pub fn answering(&self) -> Option<Phase> {
        self.asking().map(|phase| if phase == Phase::Request { Phase::Response } else { Phase::FromGateway })
    }

    /// Returns `true` for a request that only a backend can answer.
    pub fn needs_backend(&self) -> bool {
        let lists = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];
        self.asking() == Some(Phase::Request) && !self.method.as_deref().is_some_and(|name| lists.contains(&name))
    }

    pub fn goes_to(&mut self, backend: Option<&Arc<str>>, image: Image) {
        keep(&mut self.sent_on, backend, image);
    }

    pub fn comes_from(&mut self, backend: Option<&Arc<str>>, image: Image) {
        keep(&mut self.answers, backend, image);
    }

    /// Returns the request as its backend received it.
    pub fn as_sent_on(&self) -> Option<&Image> {
        of(&self.sent_on, self.backend.as_ref())
    }

    /// Returns the answer as its backend gave it.
    pub fn as_answered(&self) -> Option<&Image> {
        of(&self.answers, self.backend.as_ref())
    }

    /// Returns the size of the stored messages in bytes, without those of queued events.
    pub fn weight(&self) -> usize {
        let images = self.sent_on.iter().chain(&self.answers).map(|(_, image)| image);
        self.request.iter().chain(&self.answer).chain(images).map(Image::length).sum()
    }
}

fn keep(list: &mut Vec<(Arc<str>, Image)>, backend: Option<&Arc<str>>, image: Image) {
    let Some(backend) = backend else { return };
    match list.iter_mut().find(|(name, _)| name == backend) {
        Some((_, kept)) => *kept = image,
        None => list.push((Arc::clone(backend), image)),
    }
    list.truncate(MAX_BACKENDS);
}

fn of<'a>(list: &'a [(Arc<str>, Image)], backend: Option<&Arc<str>>) -> Option<&'a Image> {
    let found = list.iter().find(|(name, _)| Some(name) == backend);
    found.or_else(|| list.first().filter(|_| backend.is_none())).map(|(_, image)| image)
}
