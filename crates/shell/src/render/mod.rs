//! What a model sees of a command.
