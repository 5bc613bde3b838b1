//! Probes against a server on loopback.
