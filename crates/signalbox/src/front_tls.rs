//! The TLS of the listener, from its configuration to what the front uses.

use crate::failure::Failure;
use crate::{banner, output};
use signalbox_assembly::data_dir::DataDir;
use signalbox_config::{Certificates, Config, ListenTls, Transport};
use signalbox_transport::tls::{FrontTls, FrontTlsSpec, PairFiles, SelfSigned};
use std::sync::Arc;
use tokio::task::JoinSet;

/// What the front speaks TLS with.
#[derive(Debug, Clone)]
pub struct FrontSecurity {
    /// The certificates in use. [`FrontTls::reload`] reads all of them again, or none.
    pub tls: Arc<FrontTls>,
    own: Option<SelfSigned>,
}

impl FrontSecurity {
    /// Reads the files; a certificate for trying out is made if there is none yet.
    ///
    /// # Errors
    /// Says which file cannot be used, and why.
    pub fn load(config: &Config, data_dir: &DataDir) -> Result<Option<Self>, Failure> {
        let Some(listen) = &config.listen.tls else {
            return Ok(None);
        };
        let (pairs, own) = match &listen.certificates {
            Certificates::Files(pairs) => (pairs.clone(), None),
            Certificates::SelfSigned => {
                let own = SelfSigned::prepare(&data_dir.tls())?;
                (vec![own.pair.clone()], Some(own))
            }
        };
        Ok(Some(Self { tls: FrontTls::new(spec(config, listen, pairs))?, own }))
    }

    /// Reads the files as [`Self::load`] does, and keeps nothing. A certificate for trying out is not made.
    ///
    /// # Errors
    /// Says which file cannot be used, and why.
    pub fn check(config: &Config) -> Result<(), Failure> {
        if let Some(listen) = &config.listen.tls
            && let Certificates::Files(pairs) = &listen.certificates
        {
            FrontTls::new(spec(config, listen, pairs.clone()))?;
        }
        Ok(())
    }

    /// Says what a client needs to trust a certificate of our own.
    pub fn announce(&self, json: bool) {
        match &self.own {
            None => {}
            Some(own) if json => {
                let (ca_file, sha256) = (own.ca_file.display(), &own.info.fingerprint);
                tracing::info!(%ca_file, sha256, "using a self-signed certificate; clients must trust its authority");
            }
            Some(own) => output::say(banner::trusting(own)),
        }
    }

    /// Looks after the files for as long as what is returned is kept.
    #[must_use]
    pub fn watch(&self) -> JoinSet<()> {
        let mut watching = JoinSet::new();
        watching.spawn(FrontTls::watch(Arc::downgrade(&self.tls)));
        watching
    }
}

fn spec(config: &Config, listen: &ListenTls, pairs: Vec<PairFiles>) -> FrontTlsSpec {
    FrontTlsSpec {
        pairs,
        client_auth: listen.client_auth.clone(),
        min_version: listen.min_version,
        http: config.listen.transport != Transport::Tcp,
        handshake_timeout: listen.handshake_timeout,
        max_handshakes: listen.max_handshakes,
    }
}
