"""`make bench`: measures what README promises, as ratios and medians within one run.

python -m tests.bench [--output FILE] [NAME...]
"""
