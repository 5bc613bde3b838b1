//! Stacks around user data.
