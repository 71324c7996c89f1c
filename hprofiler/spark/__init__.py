"""What Spark knows of its application: jobs, stages, tasks by executor.

`log` and `rest` read it; `application.py` describes it whole, `facts.py` what a recording needs of it;
`figures.py` sums it up; `replay` schedules it again.
"""
