//! Tells the linker that the symbols of Node-API are there when the addon is loaded.

fn main() {
    napi_build::setup();
}
