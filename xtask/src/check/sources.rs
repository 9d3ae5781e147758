//! What may stand in a source file.
//!
//! Files are read as Rust tokens, so a comment or a string that mentions a forbidden word breaks no rule, and code
//! inside a macro call does.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use cargo_metadata::{Package, TargetKind};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use walkdir::WalkDir;

use super::Violation;
use crate::workspace::Workspace;

/// The packages that hold unsafe code and code per platform: the one that exists for it; the warden, a program of bare system
/// calls; the benches, whose floors are loops over them; and the addon of Node.js, whose border is a C interface.
const SYSTEM_PACKAGES: &[&str] = &[
    "dsh-subprocess-sys",
    "dsh-subprocess-warden",
    "dsh-subprocess-benches",
    "dsh-subprocess-node",
];

/// Above this a file holds two ideas.
const LONGEST_FILE: usize = 800;

/// What was looked at, and what is wrong with it.
pub(super) struct Inspection {
    pub(super) files: usize,
    pub(super) violations: Vec<Violation>,
}

/// Inspects every Rust file of the workspace.
pub(super) fn inspect(workspace: &Workspace) -> Result<Inspection> {
    let root = workspace.root();
    let roots: BTreeSet<PathBuf> = workspace.packages().iter().flat_map(crate_roots).collect();
    let system: Vec<PathBuf> = workspace
        .packages()
        .iter()
        .filter(|package| SYSTEM_PACKAGES.contains(&package.name.as_str()))
        .filter_map(|package| Some(package.manifest_path.parent()?.as_std_path().to_owned()))
        .collect();

    let mut inspection = Inspection {
        files: 0,
        violations: Vec::new(),
    };
    for path in rust_files(root, workspace.target_directory())? {
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let source = fs::read_to_string(&path).with_context(|| format!("cannot read {shown}"))?;
        let rules = Rules {
            system: system.iter().any(|directory| path.starts_with(directory)),
            crate_root: roots.contains(&path),
        };
        inspection.violations.extend(violations(&shown, &source, rules)?);
        inspection.files += 1;
    }
    Ok(inspection)
}

/// The files at which the libraries and programs of a package begin.
fn crate_roots(package: &Package) -> impl Iterator<Item = PathBuf> + '_ {
    let begins_a_crate =
        |kind: &TargetKind| matches!(kind, TargetKind::Lib | TargetKind::Bin | TargetKind::ProcMacro);
    package
        .targets
        .iter()
        .filter(move |target| target.kind.iter().any(begins_a_crate))
        .map(|target| target.src_path.as_std_path().to_owned())
}

/// Every Rust file below the root but those in a target directory, among the packages that npm installed, or in a hidden
/// directory, in order.
fn rust_files(root: &Path, target: &Path) -> Result<Vec<PathBuf>> {
    let left_out = |name: &std::ffi::OsStr| {
        name == "target" || name == "node_modules" || name.as_encoded_bytes().starts_with(b".")
    };
    let mut files = Vec::new();
    let entries = WalkDir::new(root)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|entry| entry.depth() == 0 || (!left_out(entry.file_name()) && entry.path() != target));
    for entry in entries {
        let entry = entry?;
        if entry.file_type().is_file()
            && entry
                .path()
                .extension()
                .is_some_and(|extension| extension == "rs")
        {
            files.push(entry.into_path());
        }
    }
    Ok(files)
}

/// Which rules hold for a file.
#[derive(Clone, Copy)]
struct Rules {
    /// It may hold unsafe code and code per platform.
    system: bool,
    /// A library or a program begins here.
    crate_root: bool,
}

fn violations(path: &str, source: &str, rules: Rules) -> Result<Vec<Violation>> {
    let tokens: TokenStream = source
        .parse()
        .map_err(|error| anyhow!("{path} is not made of Rust tokens: {error}"))?;

    let mut violations = Vec::new();
    let lines = source.lines().count();
    if lines > LONGEST_FILE {
        violations.push(Violation::new(
            path,
            format!("has {lines} lines; above {LONGEST_FILE} a file holds two ideas"),
        ));
    }
    if !rules.system {
        if rules.crate_root && !forbids_unsafe(&tokens) {
            violations.push(Violation::new(path, "lacks `#![forbid(unsafe_code)]`"));
        }
        visit(tokens, &mut |word, line| {
            let what = match word {
                "unsafe" => "unsafe code belongs into dsh-subprocess-sys",
                "target_os" => "code per platform belongs into dsh-subprocess-sys",
                _ => return,
            };
            violations.push(Violation::new(format!("{path}:{line}"), what));
        });
    }
    Ok(violations)
}

/// Calls `found` with each identifier, at any depth, and the line it stands in.
fn visit(tokens: TokenStream, found: &mut impl FnMut(&str, usize)) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => visit(group.stream(), found),
            TokenTree::Ident(word) => found(&word.to_string(), word.span().start().line),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// Whether an inner attribute at the top of the file is a `forbid` that names `unsafe_code`.
fn forbids_unsafe(tokens: &TokenStream) -> bool {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    tokens.windows(3).any(|window| {
        let [
            TokenTree::Punct(hash),
            TokenTree::Punct(bang),
            TokenTree::Group(attribute),
        ] = window
        else {
            return false;
        };
        let words = words(attribute.stream());
        hash.as_char() == '#'
            && bang.as_char() == '!'
            && attribute.delimiter() == Delimiter::Bracket
            && words.first().is_some_and(|word| word == "forbid")
            && words.iter().any(|word| word == "unsafe_code")
    })
}

fn words(tokens: TokenStream) -> Vec<String> {
    let mut words = Vec::new();
    visit(tokens, &mut |word, _| words.push(word.to_owned()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDINARY: Rules = Rules {
        system: false,
        crate_root: false,
    };
    const SYSTEM: Rules = Rules {
        system: true,
        crate_root: true,
    };

    fn found(source: &str, rules: Rules) -> Vec<String> {
        violations("a.rs", source, rules)
            .expect("the source has tokens")
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn unsafe_code_is_found_with_its_line_also_inside_a_macro_call() {
        let source = "fn f() {\n    unsafe { g() }\n}\nm! {\n    unsafe fn h() {}\n}\n";
        let expected = [
            "a.rs:2: unsafe code belongs into dsh-subprocess-sys",
            "a.rs:5: unsafe code belongs into dsh-subprocess-sys",
        ];
        assert_eq!(found(source, ORDINARY), expected);
        assert_eq!(found(source, SYSTEM), [""; 0]);
    }

    #[test]
    fn code_per_platform_is_found_however_it_is_written() {
        let source =
            "#[cfg(any(unix, target_os = \"macos\"))]\nconst A: bool = cfg!(target_os = \"linux\");\n";
        let expected = [
            "a.rs:1: code per platform belongs into dsh-subprocess-sys",
            "a.rs:2: code per platform belongs into dsh-subprocess-sys",
        ];
        assert_eq!(found(source, ORDINARY), expected);
        assert_eq!(found(source, SYSTEM), [""; 0]);
    }

    #[test]
    fn a_mention_in_a_comment_a_string_or_a_longer_name_breaks_no_rule() {
        let source = "//! No unsafe here.\n/// target_os\n#[deny(unsafe_code)]\nconst A: &str = \"unsafe target_os\";\n";
        assert_eq!(found(source, ORDINARY), [""; 0]);
    }

    #[test]
    fn a_crate_root_that_does_not_forbid_unsafe_code_is_found() {
        let root = Rules {
            system: false,
            crate_root: true,
        };
        assert_eq!(
            found("//! A crate.\n#![deny(unsafe_code)]\n", root),
            ["a.rs: lacks `#![forbid(unsafe_code)]`"]
        );
        assert_eq!(
            found("//! A crate.\n#![forbid(missing_docs, unsafe_code)]\n", root),
            [""; 0]
        );
        assert_eq!(
            found("#[forbid(unsafe_code)]\nmod m {}\n", root),
            ["a.rs: lacks `#![forbid(unsafe_code)]`"]
        );
    }

    #[test]
    fn a_file_that_is_too_long_is_found() {
        let longest = "\n".repeat(LONGEST_FILE);
        assert_eq!(found(&longest, ORDINARY), [""; 0]);
        assert_eq!(
            found(&format!("{longest}\n"), ORDINARY),
            ["a.rs: has 801 lines; above 800 a file holds two ideas"]
        );
        assert_eq!(found(&format!("{longest}\n"), SYSTEM).len(), 1);
    }

    #[test]
    fn a_file_that_is_no_rust_is_an_error_that_names_it() {
        let error = violations("a.rs", "fn f( {", ORDINARY).expect_err("a delimiter is missing");
        assert!(
            error.to_string().starts_with("a.rs is not made of Rust tokens: "),
            "{error}"
        );
    }
}
