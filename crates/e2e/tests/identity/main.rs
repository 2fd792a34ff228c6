//! Who a caller is: keys, tokens, certificates, sign-ins, and credentials for backends.

mod addresses;
mod auth;
mod auth_addresses;
mod auth_conformance;
mod auth_server;
mod backend_auth;
mod credentials;
mod oidc;
mod sign_in;
mod theft;
mod tls;
