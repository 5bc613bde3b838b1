pub mod environment;
pub mod imds;
