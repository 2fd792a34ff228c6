//! Where tapes are kept: SQLite, or PostgreSQL, behind the same port.
