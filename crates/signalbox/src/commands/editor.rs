//! Opens a message in the user's editor.

use crate::failure::Failure;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Temporary file, readable by the current user only. Removed on drop.
struct Private(PathBuf);

impl Private {
    fn create(text: &str) -> Result<Self, Failure> {
        let folder = std::env::temp_dir();
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| Failure::File { path, error }
        };
        let mut last = None;
        for attempt in 0..16 {
            let path = folder.join(format!("signalbox-{}-{attempt}.json", std::process::id()));
            let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
            match made {
                Ok(mut file) => {
                    let file_made = Self(path.clone());
                    file.write_all(text.as_bytes()).map_err(failed(&path))?;
                    return Ok(file_made);
                }
                Err(error) => last = Some(failed(&path)(error)),
            }
        }
        Err(last.unwrap_or_else(|| Failure::Usage("no name for a temporary file is free".to_owned())))
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Writes the text to a file that only the current user can read, and returns its path.
pub(crate) fn keep(text: &str) -> Result<PathBuf, Failure> {
    let file = Private::create(text)?;
    let path = file.0.clone();
    // Skip the drop, which would remove the file.
    std::mem::forget(file);
    Ok(path)
}

/// Opens the text in the editor and returns what was saved. Returns `None` if nothing changed or the file is empty.
pub(crate) fn edit(text: &str) -> Result<Option<String>, Failure> {
    let before = format!("{}\n", text.trim_end());
    let file = Private::create(&before)?;
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| "vi".to_owned());
    // As git does: the variable may hold arguments, and even a piece of shell.
    let status = Command::new("sh").args(["-c", &format!("{editor} \"$@\""), &editor]).arg(&file.0).status();
    let status = status.map_err(|error| Failure::File { path: editor.clone().into(), error })?;
    if !status.success() {
        return Err(Failure::Refused(format!("the editor {editor} ended with {status}; its text is not used")));
    }
    let after = std::fs::read_to_string(&file.0).map_err(|error| Failure::File { path: file.0.clone(), error })?;
    Ok(Some(after).filter(|after| !after.trim().is_empty() && after.trim() != before.trim()))
}
