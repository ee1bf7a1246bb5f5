"""TensorFusion's GPU quotas, GPUs, and what pods ask for of them."""
