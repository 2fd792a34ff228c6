//! Redaction of what a transport adds to a message: the id of an event, and the head of an HTTP request or response.

use super::EntryBuilder;
use crate::redact::REPLACEMENT;
use signalbox_engine::fact::TransportData;
use signalbox_wire::header::PARAM_PREFIX;
use std::mem::take;
use std::sync::Arc;

impl EntryBuilder {
    /// Redacts the data of a transport. Headers may repeat arguments of a tool under other names, so that none of these
    /// is kept if something was redacted in the message.
    pub(super) fn carried(&self, carried: &Arc<TransportData>, redacted_message: bool) -> Arc<TransportData> {
        let mut kept = TransportData::clone(carried);
        if let Some(id) = &mut kept.event_id {
            *id = self.redactor.text(id.to_string()).into();
        }
        if let Some(head) = &mut kept.http {
            head.url = head.url.take().map(|url| self.redactor.text(url));
            for (name, value) in &mut head.headers {
                *value = match redacted_message && name.starts_with(PARAM_PREFIX) {
                    true => REPLACEMENT.to_owned(),
                    false => self.redactor.text(take(value)),
                };
            }
        }
        if kept == **carried {
            return Arc::clone(carried);
        }
        if let Some(head) = &mut kept.http {
            head.redacted |= carried.http.as_ref().is_some_and(|before| *before != *head);
        }
        Arc::new(kept)
    }
}
