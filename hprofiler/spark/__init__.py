"""What Spark knows of its application: jobs, stages, tasks by executor; from a driver, a history server or an
event log. `facts.py` describes it; `windows.py` says which stage ran when.
"""
