"""The managed band's surfaces: hello, key-value, leases, registry, schemas, forks, graph, presence, batch."""
