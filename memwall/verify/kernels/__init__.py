"""Real kernels, each written to be read, with its traffic beside every load and store.

A file holds kernels of one kind and a `prepare` function for each: it takes a trial and its tensors and
returns the launch, with blocks chosen and scratch allocated. torch, triton and cupy are imported by these
files alone, and these files by the worker alone.
"""
