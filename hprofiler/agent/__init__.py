"""The client of agents/PROTOCOL.md: starts an agent and talks to it."""
