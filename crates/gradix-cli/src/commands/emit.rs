//! `gradix emit`: source code for the results and the derivatives.

use std::io::Write;
use std::path::Path;

use gradix::Resolved;
use gradix::derive::Options;
use gradix::domain::sizes::{Known, choose};
use gradix::emit::c::interface::Interface;
use gradix::program::ParamKind;
use gradix::target::{SM_90, Target};
use gradix_view::Source;

use super::{note, print};
use crate::arguments::{EmitArguments, Language};
use crate::failure::Failure;
use crate::source::{refuse, resolve};

/// Prints source code.
pub fn run(arguments: &EmitArguments, source: &Source) -> Result<(), Failure> {
    let selection = &arguments.selection;
    let restricted = !selection.wrt.is_empty() || !selection.of.is_empty();
    if restricted && arguments.values {
        return Err(Failure::Usage("'--wrt' and '--of' restrict derivatives; leave out '--values'".into()));
    }
    let name = name(arguments)?;
    let resolved = resolve(source, selection, arguments.program.quiet)?;
    let mut program = resolved.program.clone();
    if !arguments.values {
        let options = Options { with_results: true, ..selection.options() };
        program =
            gradix::derive(&program, &options).map_err(|errors| refuse(source, resolved.places.mark(errors)))?.program;
    }
    let real = arguments.dtype.dtype().real();
    let target = match arguments.target {
        Language::C => arguments.cpu.unwrap_or_else(gradix_run::host),
        Language::Cuda => arguments.cpu.unwrap_or(SM_90),
    };
    if target.device.is_some() != (arguments.target == Language::Cuda) {
        return Err(Failure::Usage(format!(
            "code for {} is written with '--target {}'",
            target.name,
            language(&target)
        )));
    }
    let nest = gradix::compile(&program, &[], real, &target).map_err(|error| refuse(source, vec![error]))?.nest;
    let interface = Interface { name: &name, program: &program, nest: &nest, real };
    if arguments.target == Language::Cuda {
        if arguments.header || arguments.project.is_some() {
            return Err(Failure::Usage("'--header' and '--project' are for '--target c'".into()));
        }
        return deliver(arguments, &if arguments.host { interface.cuda() } else { gradix::emit::cuda(&nest, real) });
    }
    if arguments.host {
        return Err(Failure::Usage("'--host' is for '--target cuda'".into()));
    }
    for rule in interface.unproven() {
        note(arguments.program.quiet, &format!("note: it could not be shown for all sizes that the code {rule}"));
    }
    if let Some(folder) = &arguments.project {
        return project(folder, &interface, &resolved, source, arguments.program.quiet);
    }
    deliver(arguments, &if arguments.header { interface.header() } else { interface.source() })
}

/// The language of code for a machine.
fn language(target: &Target) -> &'static str {
    if target.device.is_some() { "cuda" } else { "c" }
}

/// Prints a text, or writes it to the file that was asked for.
fn deliver(arguments: &EmitArguments, text: &str) -> Result<(), Failure> {
    let Some(path) = &arguments.output else { return print(text.as_bytes()) };
    let write = gradix_run::files::write_text(path, text);
    write.map_err(|error| Failure::Message(format!("can't write {error}")))?;
    note(arguments.program.quiet, &format!("wrote {}", path.display()));
    Ok(())
}

/// What functions and types begin with.
fn name(arguments: &EmitArguments) -> Result<String, Failure> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name = |name: &str| name.starts_with(|c: char| c.is_ascii_alphabetic()) && !name.starts_with("gx_");
    if let Some(name) = &arguments.name {
        if is_name(name) && name.chars().all(is_part) {
            return Ok(name.clone());
        }
        let rule = "a name has letters, digits and '_', starts with a letter, and not with 'gx_'";
        return Err(Failure::Message(format!("'{name}' can't begin the names of functions in C: {rule}")));
    }
    let file = arguments.program.file.as_deref().filter(|path| *path != Path::new("-"));
    let stem = file.and_then(Path::file_stem).map_or("program".into(), |stem| stem.to_string_lossy());
    let plain: String = stem.chars().map(|c| if is_part(c) { c } else { '_' }).collect();
    Ok(if is_name(&plain) { plain } else { format!("program_{plain}") })
}

/// Writes a folder with all that is needed to build and call the code. What is there already stays as it is.
fn project(
    folder: &Path,
    interface: &Interface,
    resolved: &Resolved,
    source: &Source,
    quiet: bool,
) -> Result<(), Failure> {
    let name = interface.name;
    if name == "main" {
        return Err(Failure::Message("main.c is the example: choose another '--name' than 'main'".into()));
    }
    let program = &resolved.program;
    let sizes = choose(program, &Known::default(), &resolved.places).map_err(|errors| refuse(source, errors))?;
    let free = sizes.into_iter().zip(&program.params).filter(|(_, param)| param.kind == ParamKind::Free);
    let free: Vec<_> = free.map(|(size, _)| size).collect();
    let files = [
        (format!("{name}.c"), interface.source()),
        (format!("{name}.h"), interface.header()),
        ("main.c".into(), interface.example(&free)),
        ("CMakeLists.txt".into(), interface.cmake()),
    ];
    let files = files.map(|(file, text)| (folder.join(file), text));
    if let Some((path, _)) = files.iter().find(|(path, _)| path.symlink_metadata().is_ok()) {
        return Err(Failure::Message(format!("{} exists already, and is not overwritten", path.display())));
    }
    std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    for (path, text) in &files {
        let created = std::fs::File::create_new(path);
        created.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| unwritable(path, &error))?;
        note(quiet, &format!("wrote {}", path.display()));
    }
    Ok(())
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Message(format!("can't write {}: {error}", path.display()))
}
