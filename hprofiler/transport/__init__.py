"""Ways to reach a host: `local` for this machine, `ssh` for others, `pod_exec` for containers of Kubernetes.

Only `ssh` imports a library.
"""
