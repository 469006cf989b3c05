"""A profiler's export, read, placed on the roofline, checked against healthy ranges, and answered with
steps.
"""
