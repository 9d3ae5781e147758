//! What rmcp calls.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult,
    ErrorCode, ErrorData, Implementation, InitializeRequestParams, InitializeResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig as ServerInformation, SubscriptionFilter, Tool,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};

use super::announce::{announce, place_of};
use super::session::SessionRef;
use super::tools::{self, Call, quoted};
use super::{Inner, resources};

/// The methods that are served here and have parameters that can be wrong.
const METHODS: [&str; 8] = [
    "initialize",
    "logging/setLevel",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "subscriptions/listen",
    "tools/call",
    "tools/list",
];

/// Answers the requests of sessions. Which session a request is of travels with the request.
pub(super) struct Handler {
    server: Arc<Inner>,
    /// The revisions of the protocol that are spoken here.
    versions: &'static [ProtocolVersion],
}

impl Handler {
    pub(super) fn new(server: Arc<Inner>, versions: &'static [ProtocolVersion]) -> Self {
        Self { server, versions }
    }
}

/// Returns the session that a request is of.
fn session(context: &RequestContext<RoleServer>) -> Result<&SessionRef, ErrorData> {
    context.extensions.get::<SessionRef>().ok_or_else(|| {
        ErrorData::invalid_request(
            "jobs and outputs belong to a session, and this request is of none: send `initialize` first",
            None,
        )
    })
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerInformation {
        let config = &self.server.config;
        let mut information = InitializeResult::new(capabilities())
            .with_server_info(Implementation::new(&config.name, &config.version));
        information.instructions.clone_from(&config.instructions);
        information
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(self.versions)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let session = session(&context)?;
        context.peer.set_peer_info(request.clone());
        let result = self.negotiate_initialize(&request)?;
        if session.begin_announcing() {
            tokio::spawn(announce(session.clone(), context.peer.clone()));
        }
        Ok(result)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.server.tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.server.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let session = session(&context)?;
        let Some((_running, given_up)) = session.begin_call() else {
            let most = session.traffic().max_calls();
            let text =
                format!("{most} calls of this session are running already, and no more may run at once");
            return Ok(CallToolResult::error(vec![ContentBlock::text(text)]).into());
        };
        let call = Call {
            world: &*self.server.world,
            shell: &self.server.shell,
            session,
            context: &context,
            given_up: &given_up,
            progress_interval: self.server.config.progress_interval,
        };
        let result = tools::call(call, &request.name, request.arguments).await;
        result.map(CallToolResponse::from).ok_or_else(|| {
            ErrorData::invalid_params(format!("there is no tool {}", quoted(&request.name)), None)
        })
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::list(session(
            &context,
        )?)))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = resources::template(self.server.config.page_bytes);
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = resources::read(session(&context)?, &request.uri, self.server.config.page_bytes);
        tokio::select! {
            read = read => read.map(Into::into),
            () = context.ct.cancelled() => Err(ErrorData::internal_error("the request was cancelled", None)),
        }
    }

    #[expect(
        deprecated,
        reason = "revisions before 2026-07-28 choose this way what they are told"
    )]
    async fn set_level(
        &self,
        request: rmcp::model::SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        session(&context)?.set_log_level(place_of(request.level));
        Ok(())
    }

    /// Refuses what rmcp could not read: a method that is not served here, or one whose parameters are wrong.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = quoted(&request.method);
        Err(if METHODS.contains(&request.method.as_str()) {
            let text =
                format!("the parameters of {method} are missing, or not what the protocol says they are");
            ErrorData::invalid_params(text, None)
        } else {
            let text = format!("there is no method {method} here");
            ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None)
        })
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::new();
        accepted.resources_list_changed = requested.resources_list_changed;
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let session = session(context.request_context())?.clone();
        let mut changes = session.outputs().changes();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = session.closed() => return Ok(()),
                changed = changes.changed() => {
                    if changed.is_err() || context.sink().notify_resource_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }
}

fn capabilities() -> ServerCapabilities {
    let builder = ServerCapabilities::builder()
        .enable_tools()
        .enable_resources()
        .enable_resources_list_changed();
    #[expect(
        deprecated,
        reason = "revisions before 2026-07-28 have no other way to tell of a job's end"
    )]
    builder.enable_logging().build()
}
