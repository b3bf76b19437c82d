//! Declarations of the sizes, arrays and strides that code mentions.

use super::draft::Draft;
use super::names::Names;
use super::tree::{Code, Value};
use crate::nest::Scope;
use crate::program::TensorId;
use std::collections::HashSet;
use std::rc::Rc;

/// The names that code mentions.
pub struct Mentioned(HashSet<Rc<str>>);

impl Mentioned {
    /// Those in some statements and what is inside of them.
    pub fn by(code: &[Code]) -> Self {
        let mut found = HashSet::new();
        let mut note = |value: &Value| {
            if let Value::Name(name, _) = value {
                found.insert(name.clone());
            }
        };
        code.iter().for_each(|code| code.visit(&mut note));
        Mentioned(found)
    }

    /// Whether a value is a name that is mentioned.
    pub fn has(&self, value: &Value) -> bool {
        matches!(value, Value::Name(name, _) if self.0.contains(&**name))
    }
}

/// Sizes, from the array of all of them.
pub fn sizes(draft: &mut Draft, names: &Names, mentioned: &Mentioned, all: &Value) {
    for (number, name) in names.params.iter().enumerate().filter(|(_, name)| mentioned.has(name)) {
        draft.fix(name, all.at(number));
    }
}

/// Arrays, from that of all of them; `local` declares those of a kernel's own.
pub fn arrays(
    draft: &mut Draft,
    names: &Names,
    mentioned: &Mentioned,
    all: &Value,
    local: &mut dyn FnMut(&mut Draft, TensorId, &Value),
) {
    for (buffer, name) in names.nest.buffer_ids().zip(names.buffers.iter()).filter(|(_, name)| mentioned.has(name)) {
        match names.nest[buffer].scope {
            Scope::Input(_) => draft.start(name, all.at(buffer.0 as usize)),
            Scope::Output(_) | Scope::Run => draft.fix(name, all.at(buffer.0 as usize)),
            Scope::Local(_) => local(draft, buffer, name),
        }
    }
}

/// Strides, from the sizes.
pub fn strides(draft: &mut Draft, names: &Names, mentioned: &Mentioned) {
    for (buffer, strides) in names.nest.buffer_ids().zip(names.strides.iter()) {
        for (dimension, stride) in strides.iter().enumerate().filter(|(_, stride)| mentioned.has(stride)) {
            draft.fix(stride, names.elements(buffer, dimension + 1));
        }
    }
}
