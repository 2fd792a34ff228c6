//! Analyses a conversation over standard input and output, one message per line.

use super::TapCounts;
use super::conversation::{Conversation, TapSide, Who};
use super::feed::{Tap, TapLoss, Weigh};
use super::line_cutter::{LineCutter, LinePiece};
use bytes::Bytes;
use signalbox_engine::Fact;
use std::sync::Arc;
use std::time::Instant;

/// Bytes that one side sent.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// Side that sent the bytes.
    pub side: TapSide,
    pub bytes: Bytes,
}

impl Weigh for Chunk {
    fn weight(&self) -> usize {
        self.bytes.len()
    }
}

/// Splits the input of both sides into lines and follows the conversation.
#[derive(Debug)]
pub struct StdioTap {
    from_client: LineCutter,
    from_server: LineCutter,
    conversation: Conversation,
    pieces: Vec<LinePiece>,
}

impl StdioTap {
    /// Creates a tap for one conversation. Lines longer than `max_line` are recorded in pieces.
    #[must_use]
    pub fn new(who: Who, max_line: usize) -> Self {
        Self {
            from_client: LineCutter::new(max_line),
            from_server: LineCutter::new(max_line),
            conversation: Conversation::new(who, Arc::default()),
            pieces: Vec::new(),
        }
    }

    fn cutter(&mut self, side: TapSide) -> &mut LineCutter {
        match side {
            TapSide::Client => &mut self.from_client,
            TapSide::Server => &mut self.from_server,
        }
    }

    fn cut(
        &mut self,
        at: Instant,
        side: TapSide,
        out: &mut Vec<Fact>,
        cut: impl FnOnce(&mut LineCutter, &mut Vec<LinePiece>),
    ) {
        let mut pieces = std::mem::take(&mut self.pieces);
        cut(self.cutter(side), &mut pieces);
        for LinePiece { bytes, whole } in pieces.drain(..) {
            if whole {
                self.conversation.record(at, side, bytes, out);
            } else {
                self.conversation.record_piece(at, side, bytes, out);
            }
        }
        self.pieces = pieces;
    }
}

impl Tap for StdioTap {
    type Input = Chunk;

    fn begin(&mut self, at: Instant, out: &mut Vec<Fact>) {
        self.conversation.begin(at, out);
    }

    fn take(&mut self, at: Instant, chunk: Chunk, out: &mut Vec<Fact>) {
        self.cut(at, chunk.side, out, |cutter, pieces| cutter.push(chunk.bytes, pieces));
    }

    fn lost(&mut self, at: Instant, lost: TapLoss, out: &mut Vec<Fact>) {
        // The held bytes have lost their end, and the next ones their beginning.
        for side in [TapSide::Client, TapSide::Server] {
            self.cut(at, side, out, LineCutter::finish);
        }
        self.conversation.record_gap(at, lost.to_string(), out);
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Fact>) {
        self.conversation.tick(now, out);
    }

    fn end(&mut self, at: Instant, out: &mut Vec<Fact>) -> TapCounts {
        for side in [TapSide::Client, TapSide::Server] {
            self.cut(at, side, out, LineCutter::finish);
        }
        self.conversation.end(at, None, out);
        self.conversation.counts()
    }
}
