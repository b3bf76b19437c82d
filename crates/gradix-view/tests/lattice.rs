//! Pictures of lattices, for real programs and for maps that are easy to get wrong.

use std::path::PathBuf;

use gradix::explain::{AccessReport, explain};
use gradix::{Int, Program, Resolved};
use gradix_view::explain::{lattices, sizes};
use gradix_view::lattice::{Elements, Lattice};
use roxmltree::{Document, Node};

fn resolved(text: &str) -> (Resolved, Vec<AccessReport>) {
    let resolved = gradix::resolve(&gradix::syntax::parse(text).unwrap(), &[]).unwrap();
    let reports = explain(&resolved.program, None, None).unwrap();
    (resolved, reports)
}

fn chosen(text: &str, given: &[(&str, i64)], at: Option<&[i64]>) -> gradix::Result<Vec<i64>> {
    let (Resolved { program, places }, reports) = resolved(text);
    let given: Vec<(String, Int)> = given.iter().map(|(name, size)| (name.to_string(), Int::from(*size))).collect();
    let sizes = sizes(&program, &reports, &given, at, &places)?;
    Ok(sizes.iter().map(|size| i64::try_from(size).unwrap()).collect())
}

fn drawn(text: &str, given: &[(&str, i64)], at: Option<&[i64]>) -> String {
    let (Resolved { program, .. }, reports) = resolved(text);
    let sizes: Vec<Int> = chosen(text, given, at).unwrap().into_iter().map(Int::from).collect();
    lattices(&program, &reports, &sizes, at).unwrap()
}

/// The elements that the first access reads at these sizes.
fn elements(text: &str, sizes: &[i64], at: Option<&[i64]>) -> Option<Elements> {
    let (Resolved { program, .. }, reports) = resolved(text);
    let sizes: Vec<Int> = sizes.iter().copied().map(Int::from).collect();
    Lattice::new(&program, &reports[0], &sizes, at).unwrap().unwrap().elements
}

fn circles(document: &Document, colour: &str) -> usize {
    document
        .descendants()
        .filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "circle")))
        .filter(|node| node.attribute("fill") == Some(colour))
        .count()
}

/// How many dots there are: black, blue, grey, specks.
fn dots(text: &str, given: &[(&str, i64)], at: Option<&[i64]>) -> [usize; 4] {
    let svg = drawn(text, given, at);
    let document = Document::parse(&svg).unwrap();
    ["black", "#1a4fba", "#a8a8a8", "#d9d9d9"].map(|colour| circles(&document, colour))
}

fn examples() -> Vec<(String, Resolved, Vec<AccessReport>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|e| e == "gx")).collect();
    paths.sort();
    let read = |path: &PathBuf| {
        let (resolved, reports) = self::resolved(&std::fs::read_to_string(path).unwrap());
        (path.display().to_string(), resolved, reports)
    };
    paths.iter().map(read).collect()
}

/// How many values each index of an access has; nothing if no point reads an element.
fn lengths(program: &Program, report: &AccessReport, sizes: &[Int]) -> Vec<i64> {
    let Some(lattice) = Lattice::new(program, report, sizes, None).unwrap() else { return Vec::new() };
    let length = |index: usize| {
        let values = || lattice.domain.iter().map(|point| point[index]);
        values().max().unwrap() - values().min().unwrap() + 1
    };
    (0..lattice.names.len()).map(length).collect()
}

#[test]
fn every_example_is_drawn_with_all_dots_inside() {
    let mut count = 0;
    for (name, Resolved { program, places }, reports) in examples() {
        let drawable: Vec<&AccessReport> =
            reports.iter().filter(|report| Lattice::can_draw(&program, report)).collect();
        let sizes = sizes(&program, &reports, &[], None, &places).unwrap();
        let svg = lattices(&program, &reports, &sizes, None);
        if drawable.is_empty() {
            assert!(svg.unwrap_err().contains("one, two or three indices"), "{name}");
            continue;
        }
        count += 1;
        let svg = svg.unwrap_or_else(|message| panic!("{name}: {message}"));
        let document = Document::parse(&svg).unwrap_or_else(|error| panic!("{name}: {error}"));
        let root = document.root_element();
        let number = |node: &Node, attribute: &str| -> f64 { node.attribute(attribute).unwrap().parse().unwrap() };
        for dot in document.descendants().filter(|node| node.tag_name().name() == "circle") {
            assert!((0.0..number(&root, "width")).contains(&number(&dot, "cx")), "{name}");
            assert!((0.0..number(&root, "height")).contains(&number(&dot, "cy")), "{name}");
        }
        for report in drawable {
            assert!(lengths(&program, report, &sizes).iter().all(|length| (1..=12).contains(length)), "{name}");
        }
    }
    assert!(count > 40);
}

#[test]
fn pictures_on_one_page_refer_to_nothing_by_name() {
    let pictures = [
        drawn("input x[N]\ny[i in 0..N // 2] = x[2*i]", &[], None),
        drawn("input x[N, N]\ny[i] = x[i, i]", &[], None),
        drawn("input x[15]\nf[i in 0..7, j in 0..5] = x[i - 2*j + 8]^2", &[], None),
        drawn("input x[21]\nf[i in 0..7, j in 0..5, k in 0..4] = x[i - 2*j - 2*k + 14]^2", &[], None),
        gradix_view::graph::svg(&resolved("input x[N]\ny[i] = sin(x[i])").0.program, None).unwrap(),
    ];
    for svg in pictures {
        let document = Document::parse(&svg).unwrap();
        let attributes = || document.descendants().flat_map(|node| node.attributes());
        assert!(attributes().all(|attribute| attribute.name() != "id"), "{svg}");
        assert!(attributes().all(|attribute| attribute.name() != "href"), "{svg}");
        assert!(attributes().all(|attribute| !attribute.value().contains("url(")), "{svg}");
    }
}

#[test]
fn pictures_say_how_large_they_are() {
    let (Resolved { program, .. }, _) = resolved("input x[N]\ny[i] = x[i]");
    for svg in [drawn("input x[N]\ny[i] = x[i]", &[], None), gradix_view::graph::svg(&program, None).unwrap()] {
        let document = Document::parse(&svg).unwrap();
        let root = document.root_element();
        assert!(["width", "height", "viewBox"].iter().all(|name| root.has_attribute(*name)));
    }
}

#[test]
fn a_step_of_two_reads_every_second_element() {
    let text = "input x[N]\ny[i in 0..N // 2] = x[2*i]";
    let elements = elements(text, &[10], None).unwrap();
    let readers: Vec<(i64, Vec<i64>)> = elements.readers.iter().map(|(element, by)| (element[0], by.clone())).collect();
    assert_eq!(readers, (0..5).map(|i| (2 * i, vec![i])).collect::<Vec<_>>());
    assert_eq!((elements.extents, elements.chosen), (vec![10], vec![4]));
    // The point and its element; four others that are read; as specks five points and five elements.
    assert_eq!(dots(text, &[("N", 10)], None), [2, 4, 0, 10]);
    assert!(drawn(text, &[("N", 10)], None).contains(">index i above, elements x[β] below: 5 of 10 are read<"));
    // No point reads an odd element, which is a ring then.
    assert_eq!(dots(text, &[("N", 10)], Some(&[3])), [0, 5, 0, 9]);
}

#[test]
fn a_diagonal_reads_one_element_of_each_row() {
    let text = "input x[N, N]\ny[i] = x[i, i]";
    assert_eq!(dots(text, &[("N", 5)], None), [2, 4, 0, 5 + 20]);
    let svg = drawn(text, &[("N", 5)], Some(&[3, 3]));
    assert!(svg.contains(">x[i, i] = x[3, 3]<"), "{svg}");
    assert!(svg.contains(">elements x[β1, β2] with their i: 5 of 25 are read<"), "{svg}");
    let elements = elements(text, &[5], Some(&[1, 2])).unwrap();
    assert!(elements.readers.keys().all(|element| element[0] == element[1]));
    assert!(!elements.readers.contains_key(&elements.chosen));
}

#[test]
fn floors_and_constants_are_read_by_several_points() {
    let readers = |text: &str| elements(text, &[3], None).unwrap().readers.into_values().collect::<Vec<_>>();
    assert_eq!(readers("input x[N]\ny[i in 0..2*N] = x[i // 2]"), [[0, 1], [2, 3], [4, 5]]);
    assert_eq!(readers("input x[N]\ny[i in 0..N] = x[N - 1 - i]"), [[2], [1], [0]]);
    assert_eq!(readers("param N >= 1\ninput x[N]\ny[i in 0..4] = x[0]"), [[0, 1, 2, 3]]);
    // Two solutions and their element; points outside of the domain would read others.
    assert_eq!(dots("input x[N]\ny[i in 0..2*N] = x[i // 2]", &[("N", 3)], None), [3, 2, 0, 6]);
}

#[test]
fn conditions_around_an_access_keep_points_from_reading() {
    let text = "input x[N]\ny[i in 0..N] = if i >= 2 then x[i] else 0";
    let readers = elements(text, &[6], None).unwrap().readers;
    assert_eq!(readers.into_keys().flatten().collect::<Vec<_>>(), [2, 3, 4, 5]);
}

#[test]
fn elements_of_tensors_with_more_dimensions_are_left_out() {
    let text = "input x[N, N, N]\ny[i] = x[i, i, i]";
    assert!(elements(text, &[4], None).is_none());
    assert_eq!(dots(text, &[("N", 4)], None), [1, 0, 0, 4]);
    assert!(elements("input x[N]\ny[i in 0..4] = x[i + 1000]", &[2000], None).is_none());
}

#[test]
fn chosen_sizes_give_indices_a_handful_of_values() {
    for text in [
        "input x[N], w[K]\ny[i] = sum[k] x[2*i + k] * w[k]",
        "input x[N]\ny[i in 0..N // 2] = x[2*i]",
        "input x[N, M]\ny[i in 0..min(N, M) // 2] = x[2*i, M - 1 - i]",
        "param K >= 2, N >= K, M >= N + 2\ninput x[M]\ny[i in 0..K, j in 0..M - N + 1] = x[j + N - K]",
        "input x[I, K], w[K, J]\ny[i, j] = sum[k] x[i, k] * w[k, j]",
    ] {
        let (Resolved { program, places }, reports) = resolved(text);
        let sizes = sizes(&program, &reports, &[], None, &places).unwrap();
        for report in &reports {
            let lengths = lengths(&program, report, &sizes);
            assert!(lengths.iter().all(|length| (5..=10).contains(length)), "{text}: {sizes:?} gives {lengths:?}");
        }
    }
}

#[test]
fn given_sizes_are_kept_and_unknown_names_refused() {
    let text = "input x[N], w[K]\ny[i] = sum[k] x[i + k] * w[k]";
    assert_eq!(chosen(text, &[("N", 4), ("K", 2)], None).unwrap(), [4, 2]);
    assert_eq!(chosen(text, &[("K", 2)], None).unwrap()[1], 2);
    assert_eq!(chosen(text, &[("N", 1)], None).unwrap(), [1, 1]);
    let errors = chosen(text, &[("M", 4), ("N", 4)], None).unwrap_err();
    assert_eq!((errors.len(), errors[0].code), (1, "unknown-name"));
    assert_eq!(errors[0].message, "the program has no size 'M'");
    assert_eq!(errors[0].hints, ["there is N, K"]);
    assert_eq!(chosen("param N >= 2\ninput x[N]\ny[i] = x[i]", &[("N", 1)], None).unwrap_err()[0].code, "size-bound");
}

#[test]
fn sizes_make_room_for_the_element() {
    for (text, at) in [
        ("input x[N]\ny[i] = x[i]", &[25][..]),
        ("input x[N, M]\ny[i, j] = x[i, j]", &[3, 20]),
        ("input x[N + M]\ny[i in 0..N, j in 0..M] = x[i + j]", &[30]),
        ("input x[N]\ny[i in 0..N // 3] = x[3*i]", &[40]),
    ] {
        let (Resolved { program, places }, reports) = resolved(text);
        let sizes = sizes(&program, &reports, &[], Some(at), &places).unwrap();
        assert!(lattices(&program, &reports, &sizes, Some(at)).is_ok(), "{text}: {sizes:?}");
    }
    let (Resolved { program, places }, reports) = resolved("input x[N]\ny[i] = x[i]");
    for at in [[1000], [-1], [i64::MAX], [i64::MIN]] {
        let sizes = sizes(&program, &reports, &[], Some(&at), &places).unwrap();
        let message = lattices(&program, &reports, &sizes, Some(&at)).unwrap_err();
        assert!(message.contains("is outside of 'x'"), "{message}");
    }
}
