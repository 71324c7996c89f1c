"""hprofiler: where does a distributed JVM job spend its time and memory?"""

__version__ = "0.1.0"
