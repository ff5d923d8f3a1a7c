"""MCP servers: programs and addresses that offer tools, prompts and resources."""
