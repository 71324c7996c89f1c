"""A small sample JVM job on this machine, to have something to profile: see `running_job`."""

from hprofiler.app.demo.demo import DemoJob, DemoProcess, running_job

__all__ = ["DemoJob", "DemoProcess", "running_job"]
