//! Plants variables in the environment that cargo and nextest run the tests of this package in: the conformance suite
//! shows that a runtime keeps them from its children.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=CONFORMANCE_API_KEY=planted");
    println!("cargo::rustc-env=DSH_CONFORMANCE=planted");
}
