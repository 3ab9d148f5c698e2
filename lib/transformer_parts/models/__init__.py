"""Published configurations, and one real model: its weights, its tokenizer, its forward pass and an excerpt of it.

The excerpt (`excerpt`) is part of the library and needs NumPy alone.  The rest (`weights`, `gguf_file`,
`tokenizer`, `smollm2`, `make_excerpt`) wants the extra ``transformer-parts[model]`` and the weights, which
``python -m transformer_parts.models.weights`` fetches; nothing else here touches the network.
"""
