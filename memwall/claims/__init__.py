"""Printed numbers and what they should be: a claim is data, a verdict is computed.

quantity     a number with its dimension, and the units that people print
printed      a printed number or range, and the tolerance that its rounding implies
expression   arithmetic read with a whitelist, never run as code
operations   memwall's own reports, as an expression names them
schema, load a file of claims
verdict      what a claim comes to, traced through the claims that it rests on
directives   numbers inside Markdown
coverage     the numbers of a text that no claim covers
"""
