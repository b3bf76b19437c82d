//! Long kernels in several functions: what compilers do to a function takes more time for each statement the more there are.
//!
//! ```text
//! for (item …) { step; step; step; step; }        for (item …) { gx_part_0(first, last, x, y, …); gx_part_1(…); }
//! ```
//!
//! A part is given every name that it mentions and does not declare. It changes none of them.

use super::super::tree::{Callee, Code, Head, Operator, Routine, Value};
use super::leaf::Writer;
use super::{lanes, streams};
use std::collections::HashSet;
use std::rc::Rc;

/// More statements than this make a function long.
const MAX_STATEMENTS: usize = 1200;
/// So many make a part, unless a single step has more.
const PART_STATEMENTS: usize = 300;

/// Writes the steps of an item, as calls of functions if they are long.
pub fn write(w: &mut Writer, steps: Vec<Vec<Code>>) {
    let total: usize = steps.iter().flatten().map(statements).sum();
    let parts = parts(&steps);
    if total <= MAX_STATEMENTS || parts.len() == 1 || !parts.iter().all(|part| stands_alone(part, &steps)) {
        return steps.into_iter().flatten().for_each(|code| w.draft.push(code));
    }
    for part in parts {
        let parameters = given(part);
        let name = format!("gx_part_{}", w.shared.len());
        let doc = vec!["Some steps of a long kernel.".to_string()];
        let mut body = part.concat();
        if streams(&body) {
            body.push(Code::Do(lanes::streamed()));
        }
        w.shared.push(Routine { doc, name: name.clone(), own: true, parameters: parameters.clone(), body });
        w.draft.run(Value::Made(Operator::Call(Callee::known(name.into())), parameters));
    }
}

/// The steps in groups that are long enough.
fn parts(steps: &[Vec<Code>]) -> Vec<&[Vec<Code>]> {
    let (mut parts, mut start, mut count) = (Vec::new(), 0, 0);
    for (number, step) in steps.iter().enumerate() {
        count += step.iter().map(statements).sum::<usize>();
        if count >= PART_STATEMENTS || number + 1 == steps.len() {
            parts.push(&steps[start..=number]);
            (start, count) = (number + 1, 0);
        }
    }
    parts
}

/// How many statements a statement is.
pub fn statements(code: &Code) -> usize {
    match code {
        Code::Under(_, body, otherwise) => 1 + body.iter().chain(otherwise).map(statements).sum::<usize>(),
        _ => 1,
    }
}

/// Whether a part changes nothing that it is given, and is given nothing that another step declares.
fn stands_alone(part: &[Vec<Code>], steps: &[Vec<Code>]) -> bool {
    let own = declared(part);
    let mut changed = Vec::new();
    part.iter().flatten().for_each(|code| note_changed(code, &mut changed));
    let outer = steps.iter().flatten().filter_map(|code| match code {
        Code::Declare { name, .. } => Some(name),
        _ => None,
    });
    let given: HashSet<Rc<str>> = given(part).iter().filter_map(name).cloned().collect();
    changed.iter().all(|name| own.contains(name)) && !outer.filter_map(name).any(|name| given.contains(name))
}

fn name(value: &Value) -> Option<&Rc<str>> {
    match value {
        Value::Name(name, _) => Some(name),
        _ => None,
    }
}

/// The names that a part mentions and does not declare, in order. Those in capitals are the library's.
fn given(part: &[Vec<Code>]) -> Vec<Value> {
    let mut seen = declared(part);
    let mut found = Vec::new();
    let mut note = |value: &Value| {
        if let Some(name) = name(value)
            && !name.starts_with("GX_")
            && seen.insert(name.clone())
        {
            found.push(value.clone());
        }
    };
    part.iter().flatten().for_each(|code| code.visit(&mut note));
    found
}

fn declared(part: &[Vec<Code>]) -> HashSet<Rc<str>> {
    let mut found = HashSet::new();
    part.iter().flatten().for_each(|code| note_declared(code, &mut found));
    found
}

fn note_declared(code: &Code, found: &mut HashSet<Rc<str>>) {
    match code {
        Code::Declare { name: new, .. } => found.extend(name(new).cloned()),
        Code::Under(head, body, otherwise) => {
            if let Head::For { start, .. } = head {
                found.extend(start.iter().filter_map(|(new, _)| name(new)).cloned());
            }
            body.iter().chain(otherwise).for_each(|code| note_declared(code, found));
        }
        _ => {}
    }
}

/// Names that are given another value.
fn note_changed(code: &Code, found: &mut Vec<Rc<str>>) {
    match code {
        Code::Assign(place, _) | Code::Advance(place, _) => found.extend(name(place).cloned()),
        Code::Under(head, body, otherwise) => {
            if let Head::For { advance, .. } = head {
                advance.iter().for_each(|code| note_changed(code, found));
            }
            body.iter().chain(otherwise).for_each(|code| note_changed(code, found));
        }
        _ => {}
    }
}
