"""The verifier: real kernels on the user's GPU, their time and bytes against the prediction.

case, plan     what to run: an operator, its shape, and the kernel that implements it
predict        the bound and the bytes of each memory level, with the band that is claimed for them
host, worker   a separate process runs the kernels: a crash costs its row only
kernels/       Triton, CuPy and library kernels; torch, triton and cupy are imported there alone
ncu            Nsight Compute: the command, its output, and what is missing
outcome        what came of a trial: its check, its time, its counted bytes
judge, record  measured against predicted; what a run leaves behind, and reading it back
counting/      the same algorithms in numpy over a memory that counts: no GPU needed

Only the command line reaches it, and only when asked.
"""
