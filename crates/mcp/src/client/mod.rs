//! Starting MCP servers as owned process trees: an rmcp client transport whose other end is a child of the seam.
//!
//! [`ServerTransport::spawn`] starts what a [`ServerCommand`] names, in any world, and is given to rmcp as a transport like
//! any other. What a server started this way cannot do:
//!
//! * *Leave something behind.* Its whole tree is owned, however many launchers stand between. Closing gives it the end of
//!   its input first, then time, then `SIGTERM`, a grace, and `SIGKILL`; it is over when the tree is gone. Dropping the
//!   transport begins the same.
//! * *See the host's credentials.* Its environment is the scrubbed one; what [`ServerCommand::env`] names reaches it, and it
//!   alone.
//! * *Block on its error output*, or write to the host's terminal. The last bytes are kept, can be read at any time
//!   ([`ServerProcess::stderr`]), and are quoted where the server ends unasked.
//! * *End the session with a bad line, or fill the memory with a long one.* A line that is too long, no JSON or no message is
//!   skipped, counted and reported ([`BadLine`]); where it was the answer to a request, that request fails.
//!
//! ```
//! use dsh_mcp::client::{ServerCommand, ServerTransport};
//! use dsh_subprocess::SubprocessRuntime;
//! use rmcp::ServiceExt;
//!
//! /// Lists the tools of a server that npx starts.
//! async fn tools(world: &dyn SubprocessRuntime, key: &str) -> Result<Vec<String>, Box<dyn std::error::Error>> {
//!     let argv = ["npx", "-y", "@example/server"].map(Into::into).to_vec();
//!     let mut command = ServerCommand::new(argv, "/srv/project");
//!     command.env.insert("EXAMPLE_API_KEY".into(), Some(key.into()));
//!
//!     let transport = ServerTransport::spawn(world, command).await?;
//!     let server = transport.process();
//!     let mut client = ().serve(transport).await?;
//!     let tools = client.list_all_tools().await?;
//!     client.close().await?;
//!     server.gone().await?;
//!     Ok(tools.into_iter().map(|tool| tool.name.into_owned()).collect())
//! }
//! ```

mod closing;
mod command;
mod envelope;
mod error;
mod excerpt;
mod framing;
mod incoming;
mod message;
mod outgoing;
mod pending;
mod process;
mod transport;

pub use command::{Limits, ServerCommand};
pub use envelope::{Envelope, EnvelopeScan};
pub use error::{Ended, ServerError};
pub use framing::{Line, Lines, LongLine};
pub use message::{BadLine, BadLineCause, Decoded, decode};
pub use process::{BadLines, ServerProcess};
pub use transport::{CONNECTION_CLOSED, ServerTransport};
