"""A small JVM job on this machine, to profile: `running_job`."""

from hprofiler.app.demo.demo import DemoJob, running_job

__all__ = ["DemoJob", "running_job"]
