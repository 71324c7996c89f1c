"""YARN: hosts and containers of running applications, with a handful of requests to the ResourceManager."""
