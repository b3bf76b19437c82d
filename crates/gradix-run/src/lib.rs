//! Running gradix programs.
