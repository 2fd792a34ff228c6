//! Loopback addresses that nobody listens on at the moment.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use tokio::net::TcpSocket;

/// An address of this machine on which nothing listened a moment ago.
///
/// Another process may take it before it is used: give port 0 to whatever can report the port it took.
///
/// # Errors
/// When no port is free.
pub fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// A socket that is bound and does not listen: while it is held, its address refuses connections, and no other
/// process takes it.
///
/// # Errors
/// If no port is free.
pub fn refusing_address() -> io::Result<(TcpSocket, SocketAddr)> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let address = socket.local_addr()?;
    Ok((socket, address))
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn a_held_address_refuses_connections_until_it_is_let_go() {
        let (held, address) = super::refusing_address().unwrap();
        assert!(tokio::net::TcpStream::connect(address).await.is_err());
        assert!(tokio::net::TcpListener::bind(address).await.is_err());
        drop(held);
        assert!(tokio::net::TcpListener::bind(address).await.is_ok());
    }

    #[test]
    fn a_free_address_can_be_bound() {
        let address = super::free_address().unwrap();
        assert!(std::net::TcpListener::bind(address).is_ok());
    }
}
