"""MCP servers: programs and addresses that bring tools, prompts and resources."""
