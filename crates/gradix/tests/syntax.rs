//! Text to tree and back, and what is said about text that is wrong.

mod support;

use gradix::diagnostic::Diagnostic;
use gradix::syntax::ast::*;
use gradix::syntax::{
    Ast, CONSTANTS, FREE_WORDS, FUNCTIONS, KEYWORDS, MAX_ERRORS, MAX_HEIGHT, MAX_ITEMS, MAX_NESTING, MAX_SOURCE,
    is_reserved,
};
use gradix::syntax::{latex, parse, print};
use support::tree;

#[test]
fn cases() {
    support::check("syntax", |case, section| {
        let parsed = parse(&case.source);
        if let Ok(ast) = &parsed {
            check_round_trip(ast);
            check_spans(&case.source, ast);
        }
        match (section, parsed) {
            ("fmt", Ok(ast)) => print(&ast),
            ("latex", Ok(ast)) => latex(&ast),
            ("error", Err(errors)) => support::render(&case.source, &errors),
            ("error", Ok(_)) => panic!("`{}` is accepted: {}", case.title, case.source),
            (_, Err(errors)) => panic!("`{}` is refused:\n{}", case.title, support::render(&case.source, &errors)),
            _ => panic!("unknown section `{section}`"),
        }
    });
}

/// Printing and parsing gives the same tree, and printing that changes nothing.
fn check_round_trip(ast: &Ast) {
    let text = print(ast);
    let again = parse(&text).unwrap_or_else(|errors| panic!("{}\n{text}", support::render(&text, &errors)));
    assert_eq!(tree::without_spans(&again), tree::without_spans(ast), "{text}");
    assert_eq!(print(&again), text);
}

/// The text at the span of a name is that name, and at the span of an expression is that expression.
fn check_spans(source: &str, ast: &Ast) {
    let mut ast = ast.clone();
    tree::names(&mut ast, &mut |name| assert_eq!(&source[name.span.start..name.span.end], name.text));
    let mut places = Vec::new();
    tree::exprs(&mut ast, &mut |expr| places.push(expr.clone()));
    for expr in places {
        let text = format!("y = ({})", &source[expr.span.start..expr.span.end]);
        let (again, wanted) = (tree::without_spans(&parse(&text).unwrap()), tree::without_spans(&definition(expr)));
        assert_eq!(again.statements[0].kind, wanted.statements[0].kind, "{text}");
    }
}

fn definition(body: Expr) -> Ast {
    let name = Name { text: "y".into(), span: body.span };
    let kind = StatementKind::Definition(Definition { name, indices: vec![], body });
    let span = Default::default();
    let statement = Statement { kind, span, comments: vec![], line_comment: None, blank_before: false };
    Ast { statements: vec![statement], trailing_comments: vec![] }
}

fn codes(source: &str) -> Vec<&'static str> {
    parse(source).err().unwrap_or_default().iter().map(|error: &Diagnostic| error.code).collect()
}

#[test]
fn keywords_constants_and_functions_are_reserved() {
    for word in [KEYWORDS, CONSTANTS, FUNCTIONS].concat().into_iter().filter(|word| !FREE_WORDS.contains(word)) {
        assert!(is_reserved(word));
        assert_eq!(codes(&format!("output {word}")), ["reserved-name"], "{word}");
        assert_eq!(codes(&format!("y[{word}] = 0")), ["reserved-name"], "{word}");
        assert_eq!(codes(&format!("y = sum[{word}] 0")), ["reserved-name"], "{word}");
    }
    assert!(!is_reserved("x"));
}

#[test]
fn words_that_a_program_takes_as_names_are_these_throughout() {
    let body = |source: &str| match parse(source).unwrap().statements.remove(0).kind {
        StatementKind::Definition(definition) => definition.body.kind,
        kind => panic!("{kind:?}"),
    };
    for word in ["mean", "logsumexp"] {
        assert!(!is_reserved(word));
        let line = format!("y[i] = {word}[i] - x[i]");
        assert!(matches!(body(&line), ExprKind::Reduce { .. }), "{word}");
        for taken in [
            format!("input {word}[N]"),
            format!("input x[N], {word}"),
            format!("param {word}"),
            format!("{word}[i] = x[i]"),
            format!("{word} = 1"),
            format!("input x[{word}]"),
            format!("z[i, {word}] = x[{word}]"),
            format!("z = sum[k, {word} in 0..3] x[{word}]"),
        ] {
            let text = format!("{line}\n{taken}");
            assert!(matches!(body(&text), ExprKind::Binary { .. }), "{text}");
        }
        assert!(matches!(body(&format!("{line}\nz = pad({word}[k] x[k], 0)")), ExprKind::Reduce { .. }));
    }
    assert!(matches!(body("y = stop(x)"), ExprKind::Call { .. }));
    assert_eq!(codes("stop[i] = x[i]\ny[i] = stop(x[i])"), ["bad-call"]);
    assert_eq!(codes("input stop[N]\ny[i] = stop[i]"), [""; 0]);
}

#[test]
fn every_function_can_be_called() {
    for function in FUNCTIONS {
        assert_eq!(codes(&format!("y = {function}(x, 1)")), [""; 0], "{function}");
    }
}

#[test]
fn at_most_twenty_errors_are_reported() {
    assert_eq!(codes(&"y = @\n".repeat(100)).len(), MAX_ERRORS);
    assert_eq!(codes(&"y = )\n".repeat(100)).len(), MAX_ERRORS);
    assert_eq!(codes(&"y = )\ny = @\n".repeat(100)).len(), MAX_ERRORS);
}

#[test]
fn errors_come_in_the_order_of_the_text() {
    let errors = parse("y = )\nz = @\nu = ]\n").unwrap_err();
    assert!(errors.is_sorted_by_key(|error| error.labels[0].span));
    assert_eq!(errors.len(), 3);
}

#[test]
fn a_text_over_the_limit_is_refused() {
    assert_eq!(codes(&"y = 0 + 0 + 0;".repeat(MAX_SOURCE / 10)), ["source-too-large"]);
    assert_eq!(codes(&"+".repeat(MAX_SOURCE)), ["source-too-large"]);
}

#[test]
fn twenty_thousand_definitions_are_accepted() {
    let line = |at: usize| format!("y_{at}[i] = sum[k] w_{at}[i, k] * x[2*k + {at}] + exp(-x[i])^2 / 3.5 # row {at}\n");
    let source: String = (0..20_000).map(line).collect();
    let ast = parse(&source).unwrap();
    assert_eq!(ast.statements.len(), 20_000);
    assert_eq!(print(&ast), source);
}

#[test]
fn brackets_hold_a_limited_number_of_items() {
    let items = |count: usize| vec!["i"; count].join(", ");
    assert_eq!(codes(&format!("y = x[{}]", items(MAX_ITEMS))), [""; 0]);
    assert_eq!(codes(&format!("y = x[{}]", items(MAX_ITEMS + 1))), ["too-many-items"]);
    assert_eq!(codes(&format!("y = f({})", items(MAX_ITEMS + 1))), ["too-many-items"]);
}

/// Each way to nest, as what stands before and behind the inner expression.
const NESTINGS: &[(&str, &str)] = &[
    ("(", ")"),
    ("-", ""),
    ("not ", ""),
    ("2^", ""),
    ("2^-", ""),
    ("x[", "]"),
    ("exp(", ")"),
    ("max(1, ", ")"),
    ("sum[k] ", ""),
    ("sum[k in 0..(", ")] 1"),
    ("sum[k, 0 < (", ")] 1"),
    ("if c then 1 else ", ""),
    ("if c then ", " else 1"),
    ("if ", " then 1 else 2"),
    ("1 + (2 + ", ")"),
    ("(((((", "+ 1) * 2) / 3) + 4) - 5)"),
];

#[test]
fn deep_nesting_is_refused_without_a_stack_overflow() {
    on_a_small_stack(|| {
        for (before, behind) in NESTINGS {
            let nest = |depth: usize| format!("y = {}1{}", before.repeat(depth), behind.repeat(depth));
            assert_eq!(codes(&nest(MAX_NESTING / 5)), [""; 0], "{before}");
            exercise(&nest(MAX_NESTING / 5));
            for depth in [MAX_NESTING + 1, 5_000, 20_000] {
                assert_eq!(codes(&nest(depth)), ["too-deep"], "{before}");
            }
        }
    });
}

#[test]
fn the_deepest_accepted_nesting_survives_every_use() {
    on_a_small_stack(|| {
        for (before, behind) in &NESTINGS[..6] {
            let nest = |depth: usize| format!("y = {}1{}", before.repeat(depth), behind.repeat(depth));
            let deepest = (1..=MAX_NESTING).rev().find(|&depth| codes(&nest(depth)).is_empty()).unwrap();
            exercise(&nest(deepest));
        }
    });
}

#[test]
fn long_chains_are_refused_without_a_stack_overflow() {
    on_a_small_stack(|| {
        for op in ["+", "-", "*", "/", "//", "%", "and", "or"] {
            let chain = |operators: usize| format!("y = a{}", format!(" {op} a").repeat(operators));
            exercise(&chain(MAX_HEIGHT));
            assert_eq!(codes(&chain(MAX_HEIGHT + 1)), ["too-deep"]);
            assert_eq!(codes(&chain(200_000)), ["too-deep"]);
        }
    });
}

#[test]
fn chains_within_chains_count_together() {
    on_a_small_stack(|| {
        let chain = " + a".repeat(MAX_HEIGHT / 2 - 1);
        let nest = |depth: usize| format!("y = {}a{}", "(".repeat(depth), format!("{chain})").repeat(depth));
        exercise(&nest(2));
        assert_eq!(codes(&nest(3)), ["too-deep"]);
        assert_eq!(codes(&nest(MAX_NESTING)), ["too-deep"]);
        let in_ranges =
            |depth: usize| format!("y = {}a{}", "sum[k in 0..".repeat(depth), format!("{chain}] 1").repeat(depth));
        exercise(&in_ranges(2));
        assert_eq!(codes(&in_ranges(3)), ["too-deep"]);
    });
}

#[test]
fn a_comparison_chain_can_be_long() {
    let source = format!("y = if a{} then 1 else 2\n", " < a".repeat(10_000));
    assert_eq!(print(&parse(&source).unwrap()), source);
}

fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(test).unwrap();
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Everything that recurses over a tree.
fn exercise(source: &str) {
    let ast = parse(source).unwrap_or_else(|errors| panic!("{}", support::render(source, &errors)));
    assert_eq!(ast.clone(), ast);
    assert!(!latex(&ast).is_empty());
    assert!(!format!("{ast:?}").is_empty());
    check_round_trip(&ast);
}
