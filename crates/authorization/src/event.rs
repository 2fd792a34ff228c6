//! What a reply means for an audit log: who did what here, or why it was refused.

use crate::reply::Reply;
use serde_json::Value;

/// The event behind a reply. It holds no secret, code or token, and of names that were typed in vain only those of users:
/// any other may be a password.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct AuthEvent {
    /// Name of the person who has proved who it is.
    pub person: Option<String>,
    /// Name of the user whose password was tried in vain.
    pub tried: Option<String>,
    /// Id of the client; as the request has it, if it was refused.
    pub client: Option<String>,
    /// More about it, as a JSON object.
    pub about: Value,
    /// Why it was refused; `None` if it was done.
    pub refused: Option<String>,
}

impl AuthEvent {
    /// Something that a person did with a client.
    pub(crate) fn of(person: &str, client: Option<&str>) -> Self {
        Self { person: Some(person.to_owned()), client: client.map(str::to_owned), ..Self::default() }
    }

    pub(crate) fn refused(why: impl Into<String>) -> Self {
        Self { refused: Some(why.into()), ..Self::default() }
    }
}

impl Reply {
    /// The same reply with this event.
    pub(crate) fn with_event(self, event: AuthEvent) -> Self {
        Self { event: Some(Box::new(event)), ..self }
    }

    /// The same reply, its event about this client. Nothing changes without an event.
    pub(crate) fn with_client(mut self, client: Option<&str>) -> Self {
        if let Some(event) = &mut self.event {
            event.client = client.map(str::to_owned);
        }
        self
    }

    /// The same reply, its event about the password of this user. Nothing changes without an event.
    pub(crate) fn with_tried(mut self, user: Option<&str>) -> Self {
        if let Some(event) = &mut self.event {
            event.tried = user.map(str::to_owned);
        }
        self
    }

    /// The same reply, its event caused by this person. Nothing changes without an event.
    pub(crate) fn with_person(mut self, person: Option<String>) -> Self {
        if let Some(event) = &mut self.event {
            event.person = person;
        }
        self
    }
}
