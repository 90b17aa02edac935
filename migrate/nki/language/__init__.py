"""`nki.language`: every function as the instructions it stands for, and tensor operators.

Sources: NKI API reference, nki.language, of NKI 0.1 (Neuron SDK 2.26) and of 0.3 to 0.6.
"""
