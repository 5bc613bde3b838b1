//! The matrix, cell by cell.
