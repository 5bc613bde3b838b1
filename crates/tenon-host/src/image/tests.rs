//! Tests of the whole room on temporary roots.
