//! A disk with little room, which tests fill up and empty again.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A file system that holds the records of a minute and not much more, gone with the test.
pub struct SmallDisk {
    folder: TempDir,
    sudo: bool,
}

impl SmallDisk {
    /// Mounts one; none where that is not allowed.
    pub fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        for sudo in [false, true] {
            let mounting = run(sudo, "mount", &["-t", "tmpfs", "-o", "size=96m,mode=0777", "tmpfs"], folder.path());
            if mounting {
                return Some(Self { folder, sudo });
            }
        }
        eprintln!("SKIP a full disk: no file system can be mounted here");
        None
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }

    /// Takes all the room that is left.
    pub fn fill(&self) {
        let mut file = OpenOptions::new().append(true).create(true).open(self.ballast()).unwrap();
        for size in [65_536, 4_096] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
    }

    /// Gives the room back.
    pub fn clear(&self) {
        std::fs::remove_file(self.ballast()).unwrap();
        File::create(self.path().join("probe")).and_then(|mut probe| probe.write_all(&[0; 4_096])).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Whatever still has a file there keeps it until it ends.
        run(self.sudo, "umount", &["-l"], self.folder.path());
    }
}

fn run(sudo: bool, program: &str, args: &[&str], path: &Path) -> bool {
    let mut command = Command::new(if sudo { "sudo" } else { program });
    if sudo {
        command.args(["-n", program]);
    }
    command.args(args).arg(path).output().is_ok_and(|output| output.status.success())
}
