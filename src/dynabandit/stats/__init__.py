"""Statistics: confidence intervals, bootstrap and change detection, each implemented once.

Everything here takes plain numbers and arrays. SciPy is imported only by the functions that need it, so that the
service, which uses the others, does not have to install it.
"""
