//! The mechanism, on data made up here. Whole nodes are in `fixtures/doctor`.
