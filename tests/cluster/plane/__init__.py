"""The control plane against a whole cluster: ours, and a real kube-apiserver where there is one.

A story puts objects into a cluster, lets `aliquot scheduler` run beside it as a process of its own,
and looks at nothing but what the API shows, as a user would. It is the same story on both servers.
"""
