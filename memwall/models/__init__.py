"""Models: what a decoder is made of, its parameters, and its passes as programs."""
