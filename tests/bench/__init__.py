"""`make bench`: measures what README promises, as ratios and medians within one run.

python -m tests.bench [--output FILE] [NAME...]

The exit status is 1 where a promise does not hold. Promises without a verdict (what they need is not there,
or the machine is too noisy to tell) are named in the last line and are no failure: a quieter one may tell.
"""
