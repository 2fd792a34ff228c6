//! Backends that are replaced by a tape.

use crate::assemble::AssembleError;
use crate::recording::StorePlace;
use signalbox_config::{Config, LiveCalls, TapeConfig, TapeName};
use signalbox_engine::record::StoreError;
use signalbox_replay::{LiveRouting, TapeConnector, TapePlayer};
use signalbox_runtime::Connector;
use signalbox_tape::TapeSource;
use std::sync::Arc;

/// Returns a connector that plays the backend's tape. `server` connects to the server itself, for settings that also
/// send calls there.
pub(crate) fn connector(
    config: &Config,
    name: &str,
    tape: &TapeConfig,
    server: impl FnOnce() -> Result<Arc<dyn Connector>, AssembleError>,
) -> Result<Arc<dyn Connector>, AssembleError> {
    let failed = |error| AssembleError::Tape { backend: name.to_owned(), error };
    let source = open(config, &tape.tape).map_err(failed)?;
    let player = TapePlayer::open(source, tape.settings.clone()).map_err(failed)?;
    let (calls, all) = player.calls();
    let holes = player.holes();
    tracing::info!(backend = name, calls, all, "a tape answers for this backend");
    holes.to_string().lines().for_each(|hole| tracing::warn!(backend = name, "{hole}"));
    let live = match tape.live {
        LiveCalls::None => LiveRouting::Never,
        LiveCalls::New => LiveRouting::Unknown(server()?),
        LiveCalls::All => LiveRouting::Always(server()?),
    };
    Ok(Arc::new(TapeConnector::new(name, Arc::new(player), live)))
}

/// Opens a tape that the configuration names.
///
/// # Errors
/// If the tape does not exist or cannot be read.
pub fn open(config: &Config, name: &TapeName) -> Result<TapeSource, StoreError> {
    match name {
        TapeName::File(path) => Ok(TapeSource::open(path)?),
        TapeName::Stored(name) => {
            let store = StorePlace::of(&config.record, &config.data_dir).open()?;
            let tape = store.tape(name)?;
            Ok(TapeSource::Stored(store, tape))
        }
    }
}
