//! What is known of an exchange while its events wait or come.

use super::event::Event;
use super::image::Image;
use super::progress::Progress;
use signalbox_engine::chain::Phase;
use signalbox_wire::method;
use std::collections::VecDeque;
use std::sync::Arc;

/// Most backends of one exchange whose images are kept: the one that answers, and those that get copies.
const MAX_BACKENDS: usize = 8;

/// What would become of the answer to a request as it is let through now.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Forward {
    /// The backend gets what it got, and answers what it answered.
    AsRecorded,
    /// The backend gets something else.
    Otherwise,
    /// The backend gets what it did not get.
    Unanswered,
    /// Nothing goes to a backend.
    Stopped,
    /// It is not known what goes there.
    Unknown,
}

/// An exchange, or a message of none.
#[derive(Default, Debug)]
pub(super) struct Open {
    /// Nothing for a message that belongs to no exchange.
    pub exchange: Option<u64>,
    pub session: Option<u64>,
    /// The number of its caller, if there is no session.
    pub client: Option<u64>,
    pub principal: Arc<str>,
    pub method: Option<Arc<str>>,
    pub subject: Option<Arc<str>>,
    /// The backend that it was routed to.
    pub backend: Option<Arc<str>>,
    pub round: Option<u32>,
    pub request: Option<Image>,
    /// As each backend got it.
    sent_on: Vec<(Arc<str>, Image)>,
    /// As each backend answered it.
    answers: Vec<(Arc<str>, Image)>,
    /// As the client was answered.
    pub answer: Option<Image>,
    /// A message in the middle of it whose decisions may come next.
    pub midway: Option<(Phase, Image, u64)>,
    /// True once its request, or its answer, has become an event.
    pub asked: bool,
    pub answered: bool,
    /// True if the gateway ended it before a backend could answer.
    pub ended_early: bool,
    /// True if somebody dealt with it at a breakpoint.
    pub at_breakpoint: bool,
    pub finished: bool,
    pub progress: Option<Progress>,
    pub forward: Option<Forward>,
    /// Events that wait for their turn, with the order in which they came.
    pub queue: VecDeque<(u64, Event)>,
    /// How many of these used shared state.
    pub turned: usize,
}

impl Open {
    /// The phase of its request; nothing for one about which nobody is asked.
    pub fn asking(&self) -> Option<Phase> {
        match self.method.as_deref()? {
            method::PING => None,
            method::INITIALIZE | method::SERVER_DISCOVER | method::LOGGING_SET_LEVEL | method::SUBSCRIPTIONS_LISTEN => {
                Some(Phase::ToGateway)
            }
            _ => Some(Phase::Request),
        }
    }

    /// The phase of its answer.
    pub fn answering(&self) -> Option<Phase> {
        self.asking().map(|phase| if phase == Phase::Request { Phase::Response } else { Phase::FromGateway })
    }

    /// True for a request that only a backend can answer.
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

    /// The request as its backend got it.
    pub fn as_sent_on(&self) -> Option<&Image> {
        of(&self.sent_on, self.backend.as_ref())
    }

    /// The answer as its backend gave it.
    pub fn as_answered(&self) -> Option<&Image> {
        of(&self.answers, self.backend.as_ref())
    }

    /// How many bytes of messages it holds, without those of its events.
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
