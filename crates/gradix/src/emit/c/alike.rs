//! Kernels that do the same with other arrays, such as the steps of a time loop that is written out, are one function.
//!
//! ```text
//! void gx_kernel_1(size, buffer, …) { gx_alike_1(size, buffer[1], buffer[2], …); }        u2[i] = f(u1[i - 1], u1[i])
//! void gx_kernel_2(size, buffer, …) { gx_alike_1(size, buffer[2], buffer[3], …); }        u3[i] = f(u2[i - 1], u2[i])
//! ```

use super::super::names::Names;
use super::super::tree::{Callee, Code, Operator, Renamed, Routine, Type, Value};
use super::{Drafted, parameters, with_sizes, with_strides};
use crate::nest::Scope;
use std::collections::HashMap;
use std::rc::Rc;

/// The functions of all kernels, in order, with those that several of them call before.
pub fn routines(drafted: Vec<Drafted>) -> Vec<Routine> {
    let (mut forms, mut members): (Vec<Form>, Vec<Vec<usize>>) = (Vec::new(), Vec::new());
    for (number, kernel) in drafted.iter().enumerate() {
        let form = Form::of(kernel);
        match forms.iter().position(|known| *known == form) {
            Some(place) => members[place].push(number),
            None => {
                forms.push(form);
                members.push(vec![number]);
            }
        }
    }
    members.retain(|alike| alike.len() > 1);
    let mut routines: Vec<Routine> = members.iter().map(|alike| common(&drafted, alike)).collect();
    for (number, kernel) in drafted.into_iter().enumerate() {
        routines.push(match members.iter().find(|alike| alike.contains(&number)) {
            Some(alike) => calling(kernel, number, alike[0]),
            None => kernel.routine(number),
        });
    }
    routines
}

/// What a kernel does, with its arrays and their strides called by the order in which they are mentioned.
#[derive(PartialEq)]
struct Form {
    code: Vec<Code>,
    arrays: Vec<Type>,
}

impl Form {
    fn of(kernel: &Drafted) -> Form {
        let names = &kernel.names;
        let code = with_strides(names, kernel.code.clone());
        let arrays = in_order(names, &code);
        let mut renamed = Renamed::new();
        let mut rename = |value: &Value, new: String| {
            if let Value::Name(old, _) = value {
                renamed.insert(old.clone(), new.into());
            }
        };
        // No name of C has a space in it.
        for (place, &array) in arrays.iter().enumerate() {
            rename(&names.buffers[array], format!("array {place}"));
            let strides = names.strides[array].iter().enumerate();
            strides.for_each(|(dimension, stride)| rename(stride, format!("stride {dimension} of {place}")));
        }
        let code = code.iter().map(|code| code.renamed(&renamed)).collect();
        Form { code, arrays: arrays.into_iter().map(|array| names.buffers[array].kind()).collect() }
    }
}

/// The arrays of a kernel, by number, in the order in which it mentions them.
fn in_order(names: &Names, code: &[Code]) -> Vec<usize> {
    let mut owner: HashMap<Rc<str>, usize> = HashMap::new();
    for (number, (array, strides)) in names.buffers.iter().zip(names.strides.iter()).enumerate() {
        for value in std::iter::once(array).chain(strides) {
            if let Value::Name(name, _) = value {
                owner.insert(name.clone(), number);
            }
        }
    }
    let mut found = Vec::new();
    let mut note = |value: &Value| {
        if let Value::Name(name, _) = value
            && let Some(number) = owner.get(name).filter(|number| !found.contains(*number))
        {
            found.push(*number);
        }
    };
    code.iter().for_each(|code| code.visit(&mut note));
    found
}

/// The arrays that a kernel is given, by number.
fn given(kernel: &Drafted) -> Vec<usize> {
    let names = &kernel.names;
    let is_given = |number: &usize| !matches!(names.nest.buffers[*number].scope, Scope::Local(_));
    in_order(names, &kernel.code).into_iter().filter(is_given).collect()
}

fn name(first: usize) -> String {
    format!("gx_alike_{first}")
}

/// What several kernels do, with the names of the first of them.
fn common(drafted: &[Drafted], alike: &[usize]) -> Routine {
    let kernel = &drafted[alike[0]];
    let [size, _, local, begin, end] = parameters();
    let arrays = given(kernel).into_iter().map(|number| kernel.names.buffers[number].clone());
    let parameters = std::iter::once(size).chain(arrays).chain([local, begin, end]).collect();
    let numbers: Vec<String> = alike.iter().map(usize::to_string).collect();
    let doc = vec![format!("What the kernels {} do, each with its own arrays.", numbers.join(", "))];
    let body = with_sizes(&kernel.names, kernel.code.clone());
    Routine { doc, name: name(alike[0]), own: true, parameters, body }
}

/// A kernel that is alike others.
fn calling(kernel: Drafted, number: usize, first: usize) -> Routine {
    let [size, buffer, local, begin, end] = parameters();
    let arrays = given(&kernel).into_iter().map(|number| buffer.at(number));
    let arguments = std::iter::once(size).chain(arrays).chain([local, begin, end]).collect();
    let call = Value::Made(Operator::Call(Callee::known(name(first).into())), arguments);
    Routine { body: vec![Code::Do(call)], ..kernel.routine(number) }
}
