"""SSH with paramiko."""
