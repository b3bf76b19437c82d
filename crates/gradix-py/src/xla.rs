//! Programs as custom calls of XLA, through its foreign-function interface: JAX hands over the memory of its arrays,
//! and nothing is copied.
//!
//! The structures are those of XLA's header `xla/ffi/api/c_api.h`, as far as they are needed; XLA only ever appends to
//! them. A call has the attributes `program` (the text), `sizes` (those that the program does not fix, in
//! order), `backend` and `threads` (0: one for each core).

#![allow(unsafe_code, reason = "the interface is one of C")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use gradix::Int;
use gradix::diagnostic::Diagnostic;
use gradix_run::View;
use gradix_run::cuda::Stream;
use gradix_run::function::{Function, How};
use gradix_run::{Backend, Element, Note, Recent};
use gradix_view::{Source, render};
use pyo3::prelude::*;

use crate::errors::warn;

#[repr(C)]
struct Extension {
    struct_size: usize,
    kind: c_int,
    next: *mut Extension,
}

/// The kind of extension that asks for [`Metadata`].
const METADATA: c_int = 1;

#[repr(C)]
struct MetadataExtension {
    base: Extension,
    metadata: *mut Metadata,
}

#[repr(C)]
struct Metadata {
    struct_size: usize,
    api_version: Version,
    traits: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Version {
    struct_size: usize,
    extensions: *mut Extension,
    major: c_int,
    minor: c_int,
}

#[repr(C)]
struct Api {
    struct_size: usize,
    extensions: *mut Extension,
    version: Version,
    internal: *const c_void,
    create_error: unsafe extern "C" fn(*mut ErrorArguments) -> *mut Error,
    error_message: *const c_void,
    destroy_error: *const c_void,
    register: *const c_void,
    stream: unsafe extern "C" fn(*mut StreamArguments) -> *mut Error,
}

#[repr(C)]
struct StreamArguments {
    struct_size: usize,
    extensions: *mut Extension,
    context: *mut c_void,
    stream: *mut c_void,
}

#[repr(C)]
struct ErrorArguments {
    struct_size: usize,
    extensions: *mut Extension,
    message: *const c_char,
    code: c_int,
}

const INVALID_ARGUMENT: c_int = 3;

/// An error of XLA's; opaque.
#[repr(C)]
pub struct Error([u8; 0]);

/// Arguments or results.
#[repr(C)]
struct Values {
    struct_size: usize,
    extensions: *mut Extension,
    size: i64,
    kinds: *const c_int,
    values: *const *const c_void,
}

#[repr(C)]
struct Attributes {
    struct_size: usize,
    extensions: *mut Extension,
    size: i64,
    kinds: *const c_int,
    names: *const *const Bytes,
    values: *const *const c_void,
}

const ARRAY: c_int = 1;
const SCALAR: c_int = 3;
const STRING: c_int = 4;

#[repr(C)]
struct Bytes {
    start: *const u8,
    length: usize,
}

#[repr(C)]
struct Scalar {
    dtype: c_int,
    value: *const c_void,
}

#[repr(C)]
struct Array {
    dtype: c_int,
    size: usize,
    data: *const i64,
}

#[repr(C)]
struct Buffer {
    struct_size: usize,
    extensions: *mut Extension,
    dtype: c_int,
    data: *mut c_void,
    rank: i64,
    dimensions: *const i64,
}

const S64: c_int = 5;
const F32: c_int = 11;
const F64: c_int = 12;

/// What XLA calls a handler with.
#[repr(C)]
pub struct Frame {
    struct_size: usize,
    extensions: *mut Extension,
    api: *const Api,
    context: *mut c_void,
    stage: c_int,
    arguments: Values,
    results: Values,
    attributes: Attributes,
}

/// Runs a program on the buffers of a call.
///
/// # Safety
///
/// For XLA to call: the frame is one of its own, and all that it points to lives until the return.
pub unsafe extern "C" fn handler(frame: *mut Frame) -> *mut Error {
    // SAFETY: as the caller promises.
    unsafe { handle(frame, |_| Ok(None)) }
}

/// Starts a program on the stream of a call, on buffers of a GPU.
///
/// # Safety
///
/// As for [`handler`]; what the buffers point to lives until the stream has come so far.
pub unsafe extern "C" fn device_handler(frame: *mut Frame) -> *mut Error {
    // SAFETY: as the caller promises.
    unsafe { handle(frame, |frame| stream(frame).map(Some)) }
}

/// The stream that XLA computes on.
unsafe fn stream(frame: &Frame) -> Result<Stream, String> {
    let (struct_size, extensions) = (size_of::<StreamArguments>(), std::ptr::null_mut());
    let mut arguments =
        StreamArguments { struct_size, extensions, context: frame.context, stream: std::ptr::null_mut() };
    // SAFETY: XLA's own function, with its own context.
    let error = unsafe { ((*frame.api).stream)(&raw mut arguments) };
    if error.is_null() { Ok(Stream(arguments.stream as u64)) } else { Err("XLA gives no stream".into()) }
}

/// Handles a call; `stream` is the stream of its GPU, if it has one.
unsafe fn handle(frame: *mut Frame, stream: unsafe fn(&Frame) -> Result<Option<Stream>, String>) -> *mut Error {
    // SAFETY: as the caller promises; only XLA changes what is behind the pointers.
    let frame = unsafe { &*frame };
    // SAFETY: as the caller promises.
    if unsafe { describe(frame) } {
        return std::ptr::null_mut();
    }
    // SAFETY: as the caller promises.
    let outcome = catch_unwind(AssertUnwindSafe(|| unsafe { call(frame, stream(frame)?) }));
    let outcome = outcome.unwrap_or_else(|_| Err("a defect of gradix: a part of it failed".into()));
    let Err(message) = outcome else { return std::ptr::null_mut() };
    let message = CString::new(message.replace('\0', "")).unwrap_or_default();
    let (struct_size, extensions) = (size_of::<ErrorArguments>(), std::ptr::null_mut());
    let mut arguments = ErrorArguments { struct_size, extensions, message: message.as_ptr(), code: INVALID_ARGUMENT };
    // SAFETY: XLA's own function, with arguments that it copies.
    unsafe { ((*frame.api).create_error)(&mut arguments) }
}

/// Whether XLA only asks what the handler is made for; if so, it is told: for its own version, whatever that is.
unsafe fn describe(frame: &Frame) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        let Some(extension) = frame.extensions.as_ref() else { return false };
        if extension.kind != METADATA {
            return false;
        }
        let metadata = &mut *(*frame.extensions.cast::<MetadataExtension>()).metadata;
        metadata.api_version = Version { extensions: std::ptr::null_mut(), ..(*frame.api).version };
        metadata.traits = 0;
        true
    }
}

unsafe fn call(frame: &Frame, stream: Option<Stream>) -> Result<(), String> {
    // SAFETY: as the caller promises.
    unsafe {
        let function = function(text(frame, "program")?)?;
        let backend = backend(text(frame, "backend")?)?;
        let threads = usize::try_from(number(frame, "threads")?).ok().filter(|threads| *threads > 0);
        let how = How { backend, threads };
        let names = gradix_run::function::free_names(function.program()).into_iter();
        let sizes: Vec<(String, Int)> =
            names.zip(numbers(frame, "sizes")?.iter().map(|size| Int::from(*size))).collect();
        let (inputs, outputs) = (buffers(&frame.arguments), buffers(&frame.results));
        let mut types = inputs.iter().chain(&outputs).map(|buffer| buffer.dtype);
        let first = types.next().unwrap_or(F64);
        match first {
            _ if types.any(|dtype| dtype != first) => Err("the arrays have elements of different types".into()),
            F64 => run::<f64>(&function, (how, stream), &sizes, &inputs, &outputs),
            F32 => run::<f32>(&function, (how, stream), &sizes, &inputs, &outputs),
            _ => Err("the arrays have elements that are neither float64 nor float32".into()),
        }
    }
}

unsafe fn run<T: Element>(
    function: &Function,
    (how, stream): (How, Option<Stream>),
    sizes: &[(String, Int)],
    inputs: &[&Buffer],
    outputs: &[&Buffer],
) -> Result<(), String> {
    // SAFETY: as the caller promises.
    let shapes: Vec<Vec<usize>> = inputs.iter().map(|buffer| unsafe { shape(buffer) }).collect();
    let arrays: Vec<Option<&[usize]>> = shapes.iter().map(|shape| Some(shape.as_slice())).collect();
    let bound = function.bind(&arrays, sizes).map_err(message)?;
    // SAFETY: as the caller promises.
    let given: Vec<Vec<usize>> = outputs.iter().map(|buffer| unsafe { shape(buffer) }).collect();
    if given != bound.outputs {
        return Err("the results have other shapes than the program gives them".into());
    }
    if let Some(stream) = stream {
        if !matches!(how.backend, Backend::Auto | Backend::Cuda) {
            return Err("the arrays are on a GPU, where the backend that was asked for does not compute".into());
        }
        let addresses = |buffers: &[&Buffer]| buffers.iter().map(|buffer| buffer.data as u64).collect::<Vec<_>>();
        let (inputs, outputs) = (addresses(inputs), addresses(outputs));
        // SAFETY: as the caller promises; XLA's arrays are dense.
        let notes = unsafe { function.run_on_device(&bound, T::DTYPE, &inputs, &outputs, stream) };
        tell(&notes.map_err(|error| message(vec![error]))?);
        return Ok(());
    }
    let views =
        inputs.iter().zip(&shapes).map(|(buffer, shape)| View::dense(buffer.data.cast_const().cast::<T>(), shape));
    let views: Vec<View<'_, T>> = views.collect();
    let outputs: Vec<*mut T> = outputs.iter().map(|buffer| buffer.data.cast()).collect();
    // SAFETY: XLA's arrays are dense, in the order of the program's, and results overlap nothing.
    let notes = unsafe { function.run(&bound, how, &views, &outputs) }.map_err(|error| message(vec![error]))?;
    tell(&notes);
    Ok(())
}

fn tell(notes: &[Note]) {
    if !notes.is_empty() {
        // A warning that can't be given, because Python is about to end or wants it as an exception, is lost.
        let _ = Python::try_attach(|py| warn(py, notes));
    }
}

/// The functions that were called last, by their texts, with the memory that they hold for intermediate values.
static FUNCTIONS: Recent<String, Function> = Recent::new(MAX_FUNCTIONS);

/// More programs than a model has; what is called again after it was dropped is found on disk.
const MAX_FUNCTIONS: usize = 256;

/// Forgets the functions that were called, and tells how many there were.
pub fn clear() -> usize {
    FUNCTIONS.clear()
}

/// The function of a text, made when it is first asked for.
fn function(text: &str) -> Result<Arc<Function>, String> {
    FUNCTIONS.find_or_add(
        |known| known == text,
        || {
            let resolved = gradix::syntax::parse(text).and_then(|ast| gradix::resolve(&ast, &[]));
            Ok((text.to_string(), Function::new(resolved.map_err(message)?)))
        },
    )
}

fn backend(name: &str) -> Result<Backend, String> {
    crate::plan::backend(name).ok_or_else(|| format!("there is no backend '{name}'"))
}

fn message(errors: Vec<Diagnostic>) -> String {
    let source = Source { name: "program".into(), text: String::new() };
    let errors: Vec<Diagnostic> = errors.into_iter().map(|error| Diagnostic { labels: Vec::new(), ..error }).collect();
    render(&errors, &source, false)
}

unsafe fn buffers(values: &Values) -> Vec<&Buffer> {
    // SAFETY: as the caller promises; all arguments and results are buffers.
    unsafe { slice(values.values, values.size).iter().map(|value| &*value.cast::<Buffer>()).collect() }
}

unsafe fn shape(buffer: &Buffer) -> Vec<usize> {
    // SAFETY: as the caller promises.
    unsafe { slice(buffer.dimensions, buffer.rank).iter().map(|extent| *extent as usize).collect() }
}

unsafe fn text<'a>(frame: &'a Frame, name: &str) -> Result<&'a str, String> {
    // SAFETY: as the caller promises.
    unsafe {
        let bytes = &*attribute(frame, name, STRING)?.cast::<Bytes>();
        std::str::from_utf8(slice(bytes.start, bytes.length as i64)).map_err(|error| error.to_string())
    }
}

unsafe fn number(frame: &Frame, name: &str) -> Result<i64, String> {
    // SAFETY: as the caller promises.
    unsafe {
        let scalar = &*attribute(frame, name, SCALAR)?.cast::<Scalar>();
        if scalar.dtype == S64 { Ok(*scalar.value.cast::<i64>()) } else { Err(format!("'{name}' is no i64")) }
    }
}

unsafe fn numbers<'a>(frame: &'a Frame, name: &str) -> Result<&'a [i64], String> {
    // SAFETY: as the caller promises.
    unsafe {
        let array = &*attribute(frame, name, ARRAY)?.cast::<Array>();
        if array.dtype == S64 { Ok(slice(array.data, array.size as i64)) } else { Err(format!("'{name}' are no i64")) }
    }
}

/// The value of an attribute.
unsafe fn attribute(frame: &Frame, name: &str, kind: c_int) -> Result<*const c_void, String> {
    let Attributes { size, kinds, names, values, .. } = frame.attributes;
    // SAFETY: as the caller promises.
    unsafe {
        let known = slice(names, size).iter().map(|name| slice((**name).start, (**name).length as i64));
        let place = known.zip(slice(kinds, size)).position(|(known, own)| known == name.as_bytes() && *own == kind);
        place.map(|place| *values.add(place)).ok_or_else(|| format!("the call has no attribute '{name}'"))
    }
}

/// XLA gives no pointer where there is nothing.
unsafe fn slice<'a, T>(start: *const T, length: i64) -> &'a [T] {
    // SAFETY: as the caller promises.
    if length <= 0 { &[] } else { unsafe { std::slice::from_raw_parts(start, length as usize) } }
}
