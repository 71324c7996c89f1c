"""Kubernetes: the containers of pods, and their nodes, with one list request to the API server."""
