"""What gradix is compared with. Each peer is a module with

    prepare(workload, arrays) -> {"value": call, "gradient": call}, or None where it has nothing natural to offer

`arrays` holds the arguments and the upstream derivative by name, already of the type asked for. A call runs to
completion and returns the results in the order of `workload.results`. Importing a peer that is not installed raises
ImportError. Peers run in processes of their own (worker.py), so that their threads don't meet.
"""

PEERS = {
    "hand": ("hand-written C", "peers.with_hand"),
    "jax": ("JAX", "peers.with_jax"),
    "jax-best": ("JAX, best", "peers.with_jax_best"),
    "torch": ("PyTorch eager", "peers.with_torch"),
    "torch-compile": ("PyTorch compiled", "peers.with_torch_compile"),
    "numba": ("Numba", "peers.with_numba"),
    "numpy": ("NumPy", "peers.with_numpy"),
}
