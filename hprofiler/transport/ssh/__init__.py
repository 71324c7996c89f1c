"""SSH with paramiko, which is imported when the first host is looked up."""
