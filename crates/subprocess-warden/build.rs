//! Compiles the warden's program for the target, so that the library can embed it.
//!
//! It takes what cargo builds the library with (`RUSTC`, `TARGET`, and the linker where one is configured) and nothing
//! else: no network, no other crate, no compiler wrapper, none of the flags that are meant for the host. The program has no
//! library but `core`, so any linker for the target's machine will do.
//!
//! `DSH_SUBPROCESS_WARDEN` names a program that was built elsewhere, for distributions that build it once, and for toolchains
//! that have no `core` to link with.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

/// The environment variable that names a program built elsewhere.
const PREBUILT: &str = "DSH_SUBPROCESS_WARDEN";

/// Linked with by the toolchain itself, where it ships it: it knows every machine, and serves where the system has a linker
/// for its own only.
const TOOLCHAINS_LINKER: &str = "rust-lld";

/// How the program is compiled.
const OPTIONS: &[&str] = &[
    "opt-level=s",
    "codegen-units=1",
    "panic=abort",
    "debuginfo=0",
    "strip=symbols",
    "force-unwind-tables=no",
    // One static file at fixed addresses: nothing to relocate, so no loader and no code to do without one.
    "target-feature=+crt-static",
    "relocation-model=static",
    // No C library and none of its start files; and no page of padding between code and data. Both kinds of linker,
    // compilers and bare ones, know these options.
    "link-arg=-nostdlib",
    "link-arg=-z",
    "link-arg=noseparate-code",
];

fn main() -> ExitCode {
    match provide() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            for line in error.lines() {
                println!("cargo::error={line}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Puts the program where the library includes it from.
fn provide() -> Result<(), String> {
    let target = text("TARGET")?;
    let linker_variable = format!(
        "CARGO_TARGET_{}_LINKER",
        target.to_uppercase().replace(['-', '.'], "_")
    );
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-env-changed={PREBUILT}");
    println!("cargo::rerun-if-env-changed={linker_variable}");
    if text("CARGO_CFG_TARGET_OS")? != "linux" {
        // The library says so itself, in better words than a linker's.
        return Ok(());
    }
    let program = Path::new(&variable("OUT_DIR")?).join("dsh-warden");
    match env::var_os(PREBUILT) {
        Some(prebuilt) if !prebuilt.is_empty() => copy(Path::new(&prebuilt), &program),
        _ => compile(&target, &linker_variable, &program),
    }
}

fn copy(prebuilt: &Path, program: &Path) -> Result<(), String> {
    println!("cargo::rerun-if-changed={}", prebuilt.display());
    fs::copy(prebuilt, program)
        .map(drop)
        .map_err(|error| format!("{PREBUILT} names {}: {error}", prebuilt.display()))
}

/// Compiles with the linker that cargo names; without one, with the compiler's own choice, then with the toolchain's.
fn compile(target: &str, linker_variable: &str, program: &Path) -> Result<(), String> {
    let configured = env::var_os("RUSTC_LINKER");
    let linkers = match &configured {
        Some(linker) => vec![Some(linker.as_os_str())],
        None => vec![None, Some(OsStr::new(TOOLCHAINS_LINKER))],
    };
    let mut failures = String::new();
    for linker in linkers {
        let mut rustc = rustc(target, linker, program)?;
        let output = rustc
            .output()
            .map_err(|error| format!("{} cannot be run: {error}", rustc.get_program().display()))?;
        if output.status.success() {
            return Ok(());
        }
        let _ = writeln!(
            failures,
            "with {}:\n{}",
            linker.map_or("the compiler's default linker".into(), OsStr::to_string_lossy),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Err(format!(
        "the warden's program could not be built for {target}. If the linker is missing, set {linker_variable} to one for \
         {target}; or set {PREBUILT} to a program that was built elsewhere.\n{failures}"
    ))
}

fn rustc(target: &str, linker: Option<&OsStr>, program: &Path) -> Result<Command, String> {
    let mut rustc = Command::new(variable("RUSTC")?);
    rustc
        // Relative, so that no path of the machine it was built on is in the program.
        .current_dir(variable("CARGO_MANIFEST_DIR")?)
        .arg("src/program/main.rs")
        .args([
            "--crate-name",
            "dsh_warden",
            "--crate-type",
            "bin",
            "--edition",
            "2024",
        ])
        .args(["--target", target])
        .arg("-o")
        .arg(program)
        // The package's lints are for the library, and this is somebody else's build.
        .args(["--cap-lints", "allow"]);
    for option in OPTIONS {
        rustc.args(["-C", option]);
    }
    if text("CARGO_CFG_TARGET_ENV")? == "musl" {
        // The toolchain brings its own for musl, beside the linker's.
        rustc.args(["-C", "link-self-contained=no"]);
    }
    if let Some(linker) = linker {
        let mut option = OsString::from("linker=");
        option.push(linker);
        rustc.arg("-C").arg(option);
    }
    Ok(rustc)
}

fn variable(name: &str) -> Result<OsString, String> {
    env::var_os(name).ok_or_else(|| format!("cargo has not set {name}"))
}

fn text(name: &str) -> Result<String, String> {
    env::var(name).map_err(|error| format!("{name}: {error}"))
}
