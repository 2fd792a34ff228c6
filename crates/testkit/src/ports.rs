//! Loopback addresses that nobody listens on at the moment.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// An address of this machine on which nothing listened a moment ago.
///
/// Another process may take it before it is used: give port 0 to whatever can report the port it took.
///
/// # Errors
/// When no port is free.
pub fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_free_address_can_be_bound() {
        let address = super::free_address().unwrap();
        assert!(std::net::TcpListener::bind(address).is_ok());
    }
}
