//! The recorder, the tape file, and what tapes are exported as.
