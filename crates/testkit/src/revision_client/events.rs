//! Server-sent events, as they come out of bytes.

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReceivedEvent {
    /// What it is; empty means `message`.
    pub kind: String,
    /// Its data, lines joined.
    pub data: String,
}

/// Bytes that became no event yet.
#[derive(Debug, Default)]
pub struct Events {
    unread: Vec<u8>,
    begun: ReceivedEvent,
}

impl Events {
    /// Takes bytes; returns the events that they complete. Comments and events without data are passed over.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<ReceivedEvent> {
        self.unread.extend_from_slice(bytes);
        let mut complete = Vec::new();
        while let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\n', '\r']);
            if line.is_empty() {
                let event = std::mem::take(&mut self.begun);
                if !event.data.is_empty() {
                    complete.push(event);
                }
            } else {
                self.line(line);
            }
        }
        complete
    }

    fn line(&mut self, line: &str) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.begun.kind),
            "data" => {
                if !self.begun.data.is_empty() {
                    self.begun.data.push('\n');
                }
                self.begun.data.push_str(value);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_of_pieces() {
        let mut events = Events::default();
        assert_eq!(events.feed(b": hi\n\nid: 1\ndata:\n\nevent: endp"), []);
        let whole = events.feed(b"oint\r\ndata: /a\r\ndata: b\r\n\r\ndata: {}\n\n");
        let event = |kind: &str, data: &str| ReceivedEvent { kind: kind.to_owned(), data: data.to_owned() };
        assert_eq!(whole, [event("endpoint", "/a\nb"), event("", "{}")]);
    }
}
