"""What a client learns before it calls anything."""

from jsonschema.validators import Draft202012Validator, validator_for
from mcp import MCPError

from server import Http, HttpWithHandshake, Stdio, StdioWithHandshake

# What each tool may do: whether it only reads, and whether it may destroy.
TOOLS = {
    "bash": (False, True),
    "job_output": (True, None),
    "job_kill": (False, True),
    "job_list": (True, None),
    "process_info": (True, None),
}


class Listing:
    async def test_the_server_tells_its_name_and_how_it_is_used(self):
        async with self.connect() as client:
            self.assertEqual(client.server_info.name, "dsh-subprocess")
            self.assertRegex(client.server_info.version, r"^\d+\.\d+\.\d+")
            self.assertIn("job_output", client.instructions)
            self.assertIsNotNone(client.server_capabilities.tools)
            self.assertIsNotNone(client.server_capabilities.resources)

    async def test_every_tool_is_listed_with_what_it_may_do(self):
        async with self.connect() as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        self.assertEqual(tools.keys(), TOOLS.keys())
        for name, (reads_only, destroys) in TOOLS.items():
            with self.subTest(name):
                self.assertTrue(tools[name].description)
                self.assertEqual(bool(tools[name].annotations.read_only_hint), reads_only)
                if destroys is not None:
                    self.assertEqual(tools[name].annotations.destructive_hint, destroys)

    async def test_every_schema_is_one_and_describes_an_object(self):
        async with self.connect() as client:
            tools = (await client.list_tools()).tools
        for tool in tools:
            for schema in (tool.input_schema, tool.output_schema):
                with self.subTest(f"{tool.name}: {schema.get('title')}"):
                    validator_for(schema, Draft202012Validator).check_schema(schema)
                    self.assertEqual(schema["type"], "object")

    async def test_the_schema_of_a_command_requires_the_command_alone(self):
        async with self.connect() as client:
            [bash] = [tool for tool in (await client.list_tools()).tools if tool.name == "bash"]
        self.assertEqual(
            bash.input_schema["properties"].keys(),
            {"command", "description", "timeout_ms", "workdir", "run_in_background"},
        )
        self.assertEqual(bash.input_schema["required"], ["command"])

    async def test_a_tool_that_is_not_there_is_an_error_of_the_protocol(self):
        async with self.connect() as client:
            with self.assertRaises(MCPError) as refusal:
                await client.session.call_tool("no_such_tool", {})
            self.assertIn("no_such_tool", str(refusal.exception))

    async def test_outputs_have_a_template(self):
        async with self.connect() as client:
            templates = (await client.list_resource_templates()).resource_templates
            self.assertTrue([each for each in templates if each.uri_template.startswith("dsh-output:///")])
            self.assertEqual((await client.list_resources()).resources, [])


class ListingOverStdio(Listing, Stdio):
    pass


class ListingOverStdioWithHandshake(Listing, StdioWithHandshake):
    pass


class ListingOverHttp(Listing, Http):
    pass


class ListingOverHttpWithHandshake(Listing, HttpWithHandshake):
    pass
