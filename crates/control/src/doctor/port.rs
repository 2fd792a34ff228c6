//! Port of the listener: free, used by Signalbox, or used by another program.

use super::finding::Finding;
use serde_json::Value;
use signalbox_config::ListenConfig;
use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};

const CHECK: &str = "port";

/// Checks that the address can be listened on. `running` contains the states of Signalbox processes.
pub(super) fn check(listen: &ListenConfig, running: &[Value]) -> Finding {
    let address = SocketAddr::new(listen.host, listen.port);
    if listen.port == 0 {
        return Finding::ok(CHECK, "any free port will be taken").at(address.to_string());
    }
    let elsewhere = "choose another with `mcp.protocol.transport.port` or `signalbox serve --listen 127.0.0.1:0`";
    match TcpListener::bind(address) {
        Ok(_) => Finding::ok(CHECK, "it is free"),
        Err(error) if error.kind() == ErrorKind::AddrInUse => taken(address, running, elsewhere),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let found = format!("this user may not listen on port {}", listen.port);
            Finding::problem(CHECK, found, format!("ports below 1024 need privileges; {elsewhere}"))
        }
        Err(error) => Finding::problem(CHECK, format!("cannot listen on it: {error}"), elsewhere),
    }
    .at(address.to_string())
}

fn taken(address: SocketAddr, running: &[Value], elsewhere: &str) -> Finding {
    if let Some(own) = running.iter().find(|status| serves(status, address)) {
        return Finding::ok(CHECK, format!("signalbox runs here already (pid {})", own["pid"]));
    }
    match holder(address) {
        Some((pid, program)) => Finding::problem(
            CHECK,
            format!("it is in use by `{program}` (pid {pid})"),
            format!("end that process (`kill {pid}`) if it is not needed, or {elsewhere}"),
        ),
        None => Finding::problem(
            CHECK,
            "it is in use by a process that this user cannot see",
            format!("find it with `sudo ss -ltnp 'sport = :{}'` and end it, or {elsewhere}", address.port()),
        ),
    }
}

/// Returns true if the process with this status listens at the address.
pub(super) fn serves(status: &Value, address: SocketAddr) -> bool {
    let url = status["url"].as_str().unwrap_or_default();
    let place = url.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default());
    place.parse() == Ok(address)
}

/// Returns the process that listens at a port, according to `/proc`.
fn holder(address: SocketAddr) -> Option<(u32, String)> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|file| fs::read_to_string(file).unwrap_or_default());
    let sockets: Vec<String> = tables
        .iter()
        .flat_map(|table| listeners(table, address.port()))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    let holds = |pid: &u32| {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut targets = open.filter_map(|entry| fs::read_link(entry.path()).ok());
        targets.any(|target| sockets.iter().any(|socket| target.as_os_str() == socket.as_str()))
    };
    let mut processes =
        fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let pid = processes.find(holds)?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Some((pid, name.trim().to_owned()))
}

/// Returns the inodes of the sockets in a kernel table that listen at this port.
fn listeners(table: &str, port: u16) -> Vec<&str> {
    table.lines().filter_map(|line| listener(line, port)).collect()
}

fn listener(line: &str, port: u16) -> Option<&str> {
    const LISTENS: &str = "0A";
    let columns: Vec<&str> = line.split_whitespace().collect();
    let (_, hex) = columns.get(1)?.rsplit_once(':')?;
    let here = u16::from_str_radix(hex, 16).ok()? == port && *columns.get(3)? == LISTENS;
    columns.get(9).copied().filter(|_| here)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Severity;
    use serde_json::json;
    use signalbox_config::Transport;

    fn listen(port: u16) -> ListenConfig {
        ListenConfig {
            transport: Transport::Http,
            host: [127, 0, 0, 1].into(),
            port,
            path: "/mcp".to_owned(),
            tls: None,
        }
    }

    #[test]
    fn a_taken_port_names_the_process_that_has_it() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let finding = check(&listen(port), &[]);
        assert_eq!(finding.severity, Severity::Problem);
        assert!(finding.found.contains(&format!("(pid {})", std::process::id())), "{finding:?}");
        assert!(finding.advice.unwrap().contains("--listen"));
        let ours = json!({"url": format!("http://127.0.0.1:{port}/mcp"), "pid": 7});
        let finding = check(&listen(port), &[ours]);
        assert_eq!((finding.severity, finding.found.as_str()), (Severity::Ok, "signalbox runs here already (pid 7)"));
        drop(taken);
        assert_eq!(check(&listen(port), &[]).severity, Severity::Ok);
        assert_eq!(check(&listen(0), &[]).severity, Severity::Ok);
    }

    #[test]
    fn the_kernels_table_is_read_by_port_and_state() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12345 1\n\
             1: 0100007F:1F90 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1000        0 777 1\n";
        assert_eq!(listeners(table, 8080), ["12345"]);
        assert!(listeners(table, 80).is_empty());
    }
}
