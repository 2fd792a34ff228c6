//! Rules: conditions on messages and what is done about those that meet them, as one interceptor.
