//! Array files, against files that NumPy wrote (`tests/data`).

use std::path::{Path, PathBuf};

use gradix_run::array::Array;
use gradix_run::files::{Dtype, read_npy, read_npz, write_npy, write_npz};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn counting(shape: &[usize], scale: f64) -> Array {
    let count = shape.iter().product::<usize>();
    Array::new(shape.to_vec(), (0..count).map(|k| k as f64 * scale).collect())
}

/// The message, without the folder.
fn npy_error(name: &str) -> String {
    let message = read_npy(&data(name)).unwrap_err().to_string();
    message.replace(&format!("{}/", data("").display()).replace("//", "/"), "")
}

fn npz_error(name: &str) -> String {
    let message = read_npz(&data(name), |_| true).unwrap_err().to_string();
    message.replace(&format!("{}/", data("").display()).replace("//", "/"), "")
}

#[test]
fn every_real_dtype_is_read_in_both_byte_orders() {
    for dtype in ["f8", "f4", "f2", "i8", "i4", "i2", "u8", "u4", "u2"] {
        for order in ["little", "big"] {
            let name = format!("{order}_{dtype}.npy");
            assert_eq!(read_npy(&data(&name)).unwrap(), counting(&[2, 3], 1.0), "{name}");
        }
    }
    for dtype in ["i1", "u1"] {
        assert_eq!(read_npy(&data(&format!("bytes_{dtype}.npy"))).unwrap(), counting(&[2, 3], 1.0));
    }
    assert_eq!(read_npy(&data("bytes_b1.npy")).unwrap().data, [0.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
}

#[test]
fn fortran_order_is_undone() {
    assert_eq!(read_npy(&data("fortran.npy")).unwrap(), counting(&[2, 3, 4], 1.0));
}

#[test]
fn scalars_and_empty_arrays_are_read() {
    assert_eq!(read_npy(&data("scalar.npy")).unwrap(), Array::scalar(2.5));
    assert_eq!(read_npy(&data("empty.npy")).unwrap(), Array::new(vec![3, 0], vec![]));
}

#[test]
fn special_values_are_kept() {
    let bits: Vec<u64> = read_npy(&data("special.npy")).unwrap().data.iter().map(|value| value.to_bits()).collect();
    let expected = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -0.0, 5e-324].map(f64::to_bits);
    assert_eq!(bits, expected);
}

#[test]
fn members_are_read_by_name() {
    let arrays = read_npz(&data("stored.npz"), |name| name != "c").unwrap();
    let expected = [("x".into(), counting(&[2, 3], 1.0)), ("w".into(), Array::new(vec![2], vec![1.0, 2.0]))];
    assert_eq!(arrays, expected);
}

#[test]
fn compressed_members_are_read() {
    let arrays = read_npz(&data("compressed.npz"), |_| true).unwrap();
    assert_eq!(arrays, [("x".into(), Array::zeros(vec![50, 20]).unwrap()), ("σ".into(), Array::scalar(0.5))]);
}

#[test]
fn bad_files_are_refused_by_name() {
    assert_eq!(npy_error("absent.npy"), "absent.npy: no such file");
    assert_eq!(npy_error("stored.npz"), "stored.npz: not an .npy file");
    assert_eq!(npy_error("complex.npy"), "complex.npy: dtype <c16 is not supported, only real numbers are");
    assert_eq!(npy_error("object.npy"), "object.npy: dtype |O is not supported, only real numbers are");
    assert_eq!(npz_error("absent.npz"), "absent.npz: no such file");
    assert_eq!(npz_error("stored.npz"), "stored.npz: c: dtype <c16 is not supported, only real numbers are");
    assert_eq!(npz_error("corrupt.npz"), "corrupt.npz: x: Invalid checksum");
    assert!(npz_error("cut.npz").starts_with("cut.npz: not a readable .npz file ("));
    assert!(npz_error("scalar.npy").starts_with("scalar.npy: not a readable .npz file ("));
    assert!(read_npy(&data("")).is_err() && read_npz(&data(""), |_| true).is_err());
}

#[test]
fn written_bytes_are_those_of_numpy() {
    for (name, array, dtype) in [
        ("written_f8.npy", counting(&[2, 3], 0.25), Dtype::F64),
        ("written_f4.npy", counting(&[6], 1.0 / 3.0), Dtype::F32),
        ("scalar.npy", Array::scalar(2.5), Dtype::F64),
        ("empty.npy", Array::new(vec![3, 0], vec![]), Dtype::F64),
    ] {
        write_npy(&scratch(name), &array, dtype).unwrap();
        assert_eq!(std::fs::read(scratch(name)).unwrap(), std::fs::read(data(name)).unwrap(), "{name}");
    }
}

#[test]
fn archives_round_trip_and_are_deterministic() {
    let (x, t) = (counting(&[4, 1, 5], 0.1), Array::scalar(-1.0));
    let path = scratch("round_trip.npz");
    write_npz(&path, &[("dx", &x), ("τ", &t)], Dtype::F64).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(read_npz(&path, |_| true).unwrap(), [("dx".into(), x.clone()), ("τ".into(), t.clone())]);
    write_npz(&path, &[("dx", &x), ("τ", &t)], Dtype::F64).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

#[test]
fn single_precision_rounds() {
    let path = scratch("single.npz");
    write_npz(&path, &[("x", &counting(&[2], 0.1))], Dtype::F32).unwrap();
    assert_eq!(read_npz(&path, |_| true).unwrap()[0].1.data, [0.0, f64::from(0.1f32)]);
}

#[test]
fn a_file_that_can_not_be_written_is_an_error() {
    let path = scratch("absent/out.npz");
    let message = write_npz(&path, &[], Dtype::F64).unwrap_err().to_string();
    assert!(message.contains("out.npz: there is no folder '") && message.ends_with("' to write it into"), "{message}");
}

#[cfg(target_os = "linux")]
#[test]
fn files_are_replaced_and_devices_are_not() {
    use gradix_run::files::write_text;
    let folder = scratch("whole");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("y.txt");
    write_text(&path, "old").unwrap();
    write_text(&path, "new").unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "no temporary file is left");
    assert!(write_text(&folder, "a folder").is_err());
    assert!(write_text(std::path::Path::new("/dev/full"), "full").is_err());
    write_text(std::path::Path::new("/dev/null"), "gone").unwrap();
    assert!(std::path::Path::new("/dev/null").metadata().is_ok_and(|known| !known.is_file()));
}
