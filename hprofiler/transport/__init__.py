"""Ways to reach a host: `local` for this machine, `ssh` for others, `pod_exec` for containers of Kubernetes.

Importing them imports none of their libraries.
"""
