//! What rules cost for each message.

fn main() {}
