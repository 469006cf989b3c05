"""Operators: each a plain function from a shape and a precision to a `Program`.

A family is one file of this folder. An operator's name, its dimensions and its documentation are
those of its function; the decorator adds only what the signature cannot say.
"""
