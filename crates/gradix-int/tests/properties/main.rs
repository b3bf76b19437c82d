//! Properties of random matrices and systems, held to definitions and to enumeration.

mod generator;
mod normal_forms;
mod polyhedra;
