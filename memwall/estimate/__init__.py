"""From the bound to the time that a good kernel takes.

One file a mechanism, each a formula of a shape, a chip and a few constants; the constants are data
(hardware/calibrations/), each with what it was fitted on and how far off it has been.
"""
