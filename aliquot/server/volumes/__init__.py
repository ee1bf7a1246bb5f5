"""PersistentVolumes and claims: bound, provisioned, protected, and made for pods that name them."""
