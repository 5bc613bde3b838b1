//! The binary from outside: what a user, a script or a boot unit sees of it.
//!
//! One program for all subjects, because linking costs more than running.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod canary;
mod counts;
mod desk;
mod determinism;
mod dropin;
mod exit_codes;
mod image;
mod output;
mod phases;
mod quoting;
mod rehearsal;
mod trace;
