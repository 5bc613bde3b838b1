//! Benchmarks: ratios in one run, never asserted as times.

pub mod measure;
