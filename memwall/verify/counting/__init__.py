"""The counting run: kernels in numpy over a memory that counts each byte; no GPU needed."""
